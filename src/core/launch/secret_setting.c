/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/launch/secret_setting.h"

#include <string.h>

#define STARS "***"

static char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool is_word_at(const char *text, size_t length, const char *word) {
    size_t i = 0;
    while (word[i] != '\0' && i < length && lower(text[i]) == word[i]) {
        i++;
    }
    return word[i] == '\0';
}

static bool has_word(const char *text, size_t length, const char *word) {
    for (size_t i = 0; i < length; i++) {
        if (is_word_at(text + i, length - i, word)) {
            return true;
        }
    }
    return false;
}

static bool ends_in(const char *text, size_t length, const char *word) {
    size_t size = strlen(word);
    return length >= size && is_word_at(text + length - size, size, word);
}

bool secret_setting_is_one(const char *setting) {
    static const char *const words[] = {"password", "passwd", "secret", "token"};
    size_t length = strcspn(setting, "=,");
    bool has_value = setting[length] == '=';
    while (length > 0 && setting[length - 1] == ' ') {
        length--;
    }
    for (size_t i = 0; has_value && i < sizeof words / sizeof *words; i++) {
        if (has_word(setting, length, words[i])) {
            return !ends_in(setting, length, "_file");
        }
    }
    return false;
}

void secret_setting_write_shown(const char *settings, struct text *out) {
    bool is_secret = false;
    for (const char *item = settings; *item != '\0';) {
        size_t length = strcspn(item, ",");
        size_t key = strcspn(item, "=,");
        bool has_value = item[key] == '=';
        is_secret = has_value ? secret_setting_is_one(item) : is_secret;
        if (is_secret) {
            text_append_bytes(out, item, has_value ? key + 1 : 0);
            text_append(out, STARS);
        } else {
            text_append_bytes(out, item, length);
        }
        item += length;
        if (*item == ',') {
            text_append(out, ",");
            item++;
        }
    }
}
