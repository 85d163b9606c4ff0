/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/workers/log_plan.h"

/* The result: the joined lines, and where each of them ended in the input. */
struct collected {
    struct text lines;
    size_t count;
    uint64_t raw_length;
};

static void collect(void *context, const struct line *line) {
    struct collected *collected = context;
    assert_true(line->text.length > 0);
    assert_true(line->text.data[line->text.length - 1] == '\n');
    assert_true(line->text.length <= LINE_SPLITTER_CEILING + 1);
    text_append_bytes(&collected->lines, (const char *)line->text.data, line->text.length);
    collected->count++;
    collected->raw_length += line->raw_length;
}

static struct collected split(struct slice input, size_t chunk) {
    struct line_splitter splitter = {0};
    struct collected collected = {0};
    for (size_t at = 0; at < input.length; at += chunk) {
        size_t length = input.length - at < chunk ? input.length - at : chunk;
        line_splitter_feed(&splitter, (struct slice){input.data + at, length}, collect, &collected);
        assert_true(collected.raw_length <= at + length);
    }
    line_splitter_finish(&splitter, collect, &collected);
    assert_int_equal(collected.raw_length, input.length);
    return collected;
}

static struct collected split_string(const char *input, size_t chunk) {
    return split(slice_from_string(input), chunk);
}

#define BYTES(literal)                                                                             \
    { (const uint8_t *)(literal), sizeof(literal) - 1 }

/* Inputs, and the output of Python's io.IncrementalNewlineDecoder over its UTF-8 decoder
 * (errors="replace") with a newline added to an unfinished last line. */
static const struct {
    struct slice input;
    struct slice lines;
} vectors[] = {
    {BYTES(""), BYTES("")},
    {BYTES("a"), BYTES("a\012")},
    {BYTES("a\012"), BYTES("a\012")},
    {BYTES("\012"), BYTES("\012")},
    {BYTES("a\012b"), BYTES("a\012b\012")},
    {BYTES("a\015\012b\015\012"), BYTES("a\012b\012")},
    {BYTES("10%\01520%\01530%\012"), BYTES("10%\01220%\01230%\012")},
    {BYTES("a\015\015\012b"), BYTES("a\012\012b\012")},
    {BYTES("\015"), BYTES("\012")},
    {BYTES("\015\012"), BYTES("\012")},
    {BYTES("\012\015"), BYTES("\012\012")},
    {BYTES("a\015"), BYTES("a\012")},
    {BYTES("\015\015b"), BYTES("\012\012b\012")},
    {BYTES("\303\251\342\202\254\360\237\230\200\012"),
        BYTES("\303\251\342\202\254\360\237\230\200\012")},
    {BYTES("\303"), BYTES("\357\277\275\012")},
    {BYTES("\303\012"), BYTES("\357\277\275\012")},
    {BYTES("x\342\202\012z"), BYTES("x\357\277\275\012z\012")},
    {BYTES("\342\202A"), BYTES("\357\277\275A\012")},
    {BYTES("\360\237\230A"), BYTES("\357\277\275A\012")},
    {BYTES("\360\200\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\355\240\200"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\300\257"), BYTES("\357\277\275\357\277\275\012")},
    {BYTES("\377\376\012"), BYTES("\357\277\275\357\277\275\012")},
    {BYTES("\364\220\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\365\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\340\200\200"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\342\202\015\012q"), BYTES("\357\277\275\012q\012")},
    {BYTES("\200\200"), BYTES("\357\277\275\357\277\275\012")},
    {BYTES("\360\237\342\202\254"), BYTES("\357\277\275\342\202\254\012")},
    {BYTES("a\000b\012"), BYTES("a\000b\012")},
    {BYTES("\303\303\251"), BYTES("\357\277\275\303\251\012")},
    {BYTES("\341\341\341\012"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\364\217\277\277"), BYTES("\364\217\277\277\012")},
    {BYTES("\357\277\277"), BYTES("\357\277\277\012")},
    {BYTES("\033[31mred\033[0m\012"), BYTES("\033[31mred\033[0m\012")},
    {BYTES("\302\205x\342\200\250y\013\014\012"), BYTES("\302\205x\342\200\250y\013\014\012")},
    {BYTES("\217\364\251\240\377\220"),
        BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("A\377\012\220\202\364\342\303\220\364\364\220"),
        BYTES("A\357\277\275\012\357\277\275\357\277\275\357\277\275\357\277\275\303\220\357"
              "\277\275\357\277\275\357\277\275\012")},
    {BYTES("\251\342\251\237\355\012A\277\217"),
        BYTES("\357\277\275\342\251\237\357\277\275\012A\357\277\275\357\277\275\012")},
    {BYTES("\254\012\202"), BYTES("\357\277\275\012\357\277\275\012")},
    {BYTES("\377\355\237\355\217\360\251\240\200\015"),
        BYTES("\357\277\275\357\277\275\357\277\275\360\251\240\200\012")},
    {BYTES("\220\303\202\237\254"), BYTES("\357\277\275\303\202\357\277\275\357\277\275\012")},
    {BYTES("\237\355\217\240\364\217\237\217\342"),
        BYTES("\357\277\275\355\217\240\364\217\237\217\357\277\275\012")},
    {BYTES("\012\202\377\277\340\364\217\217"),
        BYTES("\012\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\303\217\202\254"), BYTES("\303\217\357\277\275\357\277\275\012")},
    {BYTES("A\220\220A"), BYTES("A\357\277\275\357\277\275A\012")},
    {BYTES("A\237\251\012\254\237\237\200"), BYTES("A\357\277\275\357\277\275\012\357\277\275"
                                                   "\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\377\377\015"), BYTES("\357\277\275\357\277\275\012")},
    {BYTES("\217\340\364\202\237\342\015\254\012"),
        BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\012\357\277\275\012")},
    {BYTES("\200\377\364\015"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\237\254\377\202\251\015"),
        BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\340\240\251\355\355\360\237\355"),
        BYTES("\340\240\251\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\364\200\377\237\202\237\342\254\237\202\237\254"),
        BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\342\254\237\357\277"
              "\275\357\277\275\357\277\275\012")},
    {BYTES("\340\012\237\217\340\012\355\377\217\251\015"),
        BYTES("\357\277\275\012\357\277\275\357\277\275\357\277\275\012\357\277\275\357\277\275"
              "\357\277\275\357\277\275\012")},
    {BYTES("\360\240\240\377\202\220\012\217"),
        BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\012\357\277\275\012")},
    {BYTES("\012\240\202"), BYTES("\012\357\277\275\357\277\275\012")},
    {BYTES("\254\217\377\340\277\240\277\340\240\377"),
        BYTES("\357\277\275\357\277\275\357\277\275\340\277\240\357\277\275\357\277\275\357\277"
              "\275\012")},
    {BYTES("\254\355\200\012\217\251\254"),
        BYTES("\357\277\275\357\277\275\012\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\342\202\342\340\277\237\200\200\377\340\340"),
        BYTES("\357\277\275\357\277\275\340\277\237\357\277\275\357\277\275\357\277\275\357\277"
              "\275\357\277\275\012")},
    {BYTES("\360\277A\340\303\217"), BYTES("\357\277\275A\357\277\275\303\217\012")},
    {BYTES("\202\342\200\015\237\303\340\217\277\202"),
        BYTES("\357\277\275\357\277\275\012\357\277\275\357\277\275\357\277\275\357\277\275\357"
              "\277\275\357\277\275\012")},
    {BYTES("A\377\240\217\251\237\254\237"),
        BYTES("A\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357"
              "\277\275\012")},
    {BYTES("\360\240\237\254\237\217\237"),
        BYTES("\360\240\237\254\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\237\251\303"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\220\377\237"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\364\342\015\360\237\254\364\340\342"),
        BYTES("\357\277\275\357\277\275\012\357\277\275\357\277\275\357\277\275\357\277\275"
              "\012")},
    {BYTES("\217\254\200\342"), BYTES("\357\277\275\357\277\275\357\277\275\357\277\275\012")},
    {BYTES("\015\237\303"), BYTES("\012\357\277\275\357\277\275\012")},
    {BYTES("\217\015\012\220\200\277\237\254\342"),
        BYTES("\357\277\275\012\357\277\275\357\277\275\357\277\275\357\277\275\357\277\275\357"
              "\277\275\012")},
    {BYTES("\237\364\237"), BYTES("\357\277\275\357\277\275\357\277\275\012")},
};

TEST(lines_are_as_python_reads_them_whatever_the_chunks) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        for (size_t chunk = 1; chunk <= 4; chunk++) {
            struct collected collected = split(vectors[i].input, chunk);
            assert_int_equal(collected.lines.length, vectors[i].lines.length);
            assert_memory_equal(text_string(&collected.lines),
                vectors[i].lines.length == 0 ? (const void *)"" : vectors[i].lines.data,
                vectors[i].lines.length);
            text_clear(&collected.lines);
        }
    }
}

static char *long_line(size_t length, const char *end) {
    char *line = malloc(length + strlen(end) + 1);
    assert_non_null(line);
    memset(line, 'x', length);
    memcpy(line + length, end, strlen(end) + 1);
    return line;
}

TEST(a_longer_line_comes_in_pieces) {
    FREED char *line = long_line(2 * LINE_SPLITTER_CEILING + 5, "\nnext\n");
    for (size_t chunk = 999; chunk < 1000000; chunk *= 50) {
        struct collected collected = split_string(line, chunk);
        assert_int_equal(collected.count, 4);
        assert_int_equal(collected.lines.length, strlen(line) + 2);
        text_clear(&collected.lines);
    }
}

TEST(binary_rubbish_stays_below_the_ceiling) {
    size_t length = 5 * LINE_SPLITTER_CEILING;
    uint8_t *rubbish = malloc(length);
    assert_non_null(rubbish);
    memset(rubbish, 0xFF, length);
    struct collected collected = split((struct slice){rubbish, length}, 4096);
    assert_true(collected.count >= 15);
    text_clear(&collected.lines);
    free(rubbish);
}

TEST(any_needle_makes_a_match) {
    CLEARED_BY(text_list_clear) struct text_list needles = {0};
    assert_false(line_matches(slice_from_string("loss=1\n"), &needles));
    text_list_add(&needles, "NaN");
    assert_false(line_matches(slice_from_string("loss=1\n"), &needles));
    assert_false(line_matches(slice_from_string("NNa\n"), &needles));
    assert_true(line_matches(slice_from_string("loss=NaNNN\n"), &needles));
    assert_true(line_matches(slice_from_string("NaNaN"), &needles));
    text_list_add(&needles, "1\n");
    assert_true(line_matches(slice_from_string("loss=1\n"), &needles));
    assert_false(line_matches(slice_from_string("loss=12\n"), &needles));
    text_list_add(&needles, "");
    assert_true(line_matches(slice_from_string("\n"), &needles));
}
