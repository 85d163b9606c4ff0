/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings as they may be shown. A launcher's messages and logs are read by others than who has
 * written its command line, so the values of passwords are left out. */
#ifndef MUSTER_CORE_LAUNCH_SECRET_SETTING_H
#define MUSTER_CORE_LAUNCH_SECRET_SETTING_H

#include <stdbool.h>

#include "base/text.h"

/* Whether the value of the setting at the start of `setting` (KEY=VALUE, with or without more
 * behind it) is a secret: its key has the word password, passwd, secret or token in it, and does
 * not end in _file. Without a '=' it has no value. */
bool secret_setting_is_one(const char *setting);

/* Appends KEY=VALUE,KEY=VALUE with stars in the place of secrets. What has no '=' behind a secret
 * is taken for a part of it: a password with a comma. */
void secret_setting_write_shown(const char *settings, struct text *out);

#endif
