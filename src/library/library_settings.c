/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/library_settings.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "library/library_failure.h"

/* A struct cannot be that large: its initialiser was forgotten. */
#define LARGEST_STRUCT 65536
/* The kernel takes no longer path. */
#define PATH_BYTES 4095
#define DEFAULT_SILENCE 180
#define LEAST_SILENCE 2
/* About 30 years. It is counted with, so "for ever" would not do. */
#define LONGEST_SILENCE 1e9

static bool is_zero(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

enum muster_error library_settings_read(
    const void *given, size_t least, void *out, size_t size, struct muster_failure *out_failure) {
    size_t given_size = 0;
    if (given != NULL) {
        memcpy(&given_size, given, sizeof given_size);
    }
    if (given_size < least || given_size > LARGEST_STRUCT) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID,
            given == NULL ? "the settings are NULL"
                          : "the settings do not begin with their initialiser");
    }
    size_t known = given_size < size ? given_size : size;
    if (!is_zero((const unsigned char *)given + known, given_size - known)) {
        return library_fail(out_failure, MUSTER_ERROR_UNSUPPORTED,
            "the settings have a field that libmuster %s does not know", muster_version());
    }
    memset(out, 0, size);
    memcpy(out, given, known);
    return MUSTER_OK;
}

enum muster_error library_text_check(
    const char *what, const char *text, size_t maximum, struct muster_failure *out_failure) {
    if (text == NULL || *text == '\0') {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no %s", what);
    }
    if (strnlen(text, maximum + 1) > maximum) {
        return library_fail(
            out_failure, MUSTER_ERROR_LIMIT, "the %s is longer than %zu bytes", what, maximum);
    }
    return MUSTER_OK;
}

enum muster_error library_path_check(
    const char *what, const char *path, struct muster_failure *out_failure) {
    return library_text_check(what, path, PATH_BYTES, out_failure);
}

enum muster_error library_utf8_check(
    const char *what, const char *text, size_t maximum, struct muster_failure *out_failure) {
    enum muster_error error = library_text_check(what, text, maximum, out_failure);
    if (error == MUSTER_OK && !utf8_is_python_text(slice_from_string(text))) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "the %s is not UTF-8", what);
    }
    return error;
}

/* No name of a machine has a control character or a space. */
static bool is_in_one_word(const char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ' || *text == '\x7f') {
            return false;
        }
    }
    return true;
}

enum muster_error library_host_check(
    const char *what, const char *host, size_t maximum, struct muster_failure *out_failure) {
    enum muster_error error = library_utf8_check(what, host, maximum, out_failure);
    if (error == MUSTER_OK && !is_in_one_word(host)) {
        return library_fail(
            out_failure, MUSTER_ERROR_INVALID, "the %s has a space or a control character", what);
    }
    return error;
}

enum muster_error library_time_read(double seconds, struct duration zero, struct duration *out,
    struct muster_failure *out_failure) {
    if (isnan(seconds)) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "the time is no number");
    }
    *out = seconds < 0 ? DURATION_FOREVER : duration_from_seconds(seconds);
    if (out->nanoseconds == 0) {
        *out = seconds > 0 ? (struct duration){1} : zero;
    }
    return MUSTER_OK;
}

enum muster_error library_silence_read(
    double seconds, struct duration *out, struct muster_failure *out_failure) {
    seconds = seconds == 0 ? DEFAULT_SILENCE : seconds;
    if (!(seconds >= LEAST_SILENCE)) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID,
            "the silence timeout has to be %d or more", LEAST_SILENCE);
    }
    *out = duration_from_seconds(seconds < LONGEST_SILENCE ? seconds : LONGEST_SILENCE);
    return MUSTER_OK;
}
