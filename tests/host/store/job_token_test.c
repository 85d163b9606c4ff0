/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/store/store_admission.h"

#define TOKEN "0123456789abcdef"

static struct job_token *open_text(const char *text) {
    struct job_token *token = NULL;
    assert_int_equal(job_token_open(text, NULL, &token, NULL), FAILURE_NONE);
    return token;
}

static void expect_refusal(const char *text, const char *path, const char *words) {
    struct job_token *token = NULL;
    struct failure failure = {0};
    assert_int_not_equal(job_token_open(text, path, &token, &failure), FAILURE_NONE);
    if (strstr(failure.message, words) == NULL) {
        fail_msg("%s", failure.message);
    }
    assert_null(strstr(failure.message, TOKEN)); /* it is never printed */
    assert_null(token);
}

TEST(codes_depend_on_token_and_message) {
    struct job_token *one = open_text(TOKEN);
    struct job_token *other = open_text(TOKEN "0");
    const struct store_key *key = job_token_key(one);
    uint8_t codes[4][STORE_PROOF_CODE_BYTES];
    assert_true(key->authenticate(key->context, slice_from_string("m"), codes[0]));
    assert_true(key->authenticate(key->context, slice_from_string("m"), codes[1]));
    assert_true(key->authenticate(key->context, slice_from_string("n"), codes[2]));
    const struct store_key *other_key = job_token_key(other);
    assert_true(other_key->authenticate(other_key->context, slice_from_string("m"), codes[3]));
    assert_true(key->equals(key->context, codes[0], codes[1]));
    assert_false(key->equals(key->context, codes[0], codes[2]));
    assert_false(key->equals(key->context, codes[0], codes[3]));
    job_token_free(one);
    job_token_free(other);
    assert_null(job_token_key(NULL));
}

/* RFC 4231, test case 6: a key that is longer than a block. */
TEST(codes_are_those_of_the_standard) {
    static const uint8_t expected[STORE_PROOF_CODE_BYTES] = {0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0,
        0xb6, 0x7f, 0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5, 0xb7, 0x7f, 0x8e, 0x0b, 0xc6, 0x21, 0x37,
        0x28, 0xc5, 0x14, 0x05, 0x46, 0x04, 0x0f, 0x0e, 0xe3, 0x7f, 0x54};
    char text[132] = {0};
    uint8_t code[STORE_PROOF_CODE_BYTES];
    memset(text, 0xaa, sizeof text - 1);
    struct job_token *token = open_text(text);
    const struct store_key *key = job_token_key(token);
    assert_true(key->authenticate(key->context,
        slice_from_string("Test Using Larger Than Block-Size Key - Hash Key First"), code));
    assert_memory_equal(code, expected, sizeof expected);
    job_token_free(token);
}

TEST(nonces_differ) {
    struct job_token *token = open_text(TOKEN);
    const struct store_key *key = job_token_key(token);
    uint8_t nonces[2][STORE_PROOF_NONCE_BYTES] = {0};
    assert_true(key->draw(key->context, nonces[0]));
    assert_true(key->draw(key->context, nonces[1]));
    assert_memory_not_equal(nonces[0], nonces[1], STORE_PROOF_NONCE_BYTES);
    job_token_free(token);
}

static void write_token(const char *path, const char *text, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* Only root can give files away. */
TEST(a_file_of_another_user_is_refused) {
    char path[] = "/tmp/muster-token-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    bool is_given = fchown(fd, 12345, (gid_t)-1) == 0;
    close(fd);
    if (is_given) {
        write_token(path, TOKEN, 0600);
        expect_refusal(NULL, path, "belongs to user 12345");
    }
    assert_int_equal(unlink(path), 0);
    if (!is_given) {
        SKIP_BECAUSE("only root can give a file to another user");
    }
}
