/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of client/page as one HTML text, which tools/embed_page.py makes. */
#ifndef MUSTER_MAIN_TELLING_PAGE_TEXT_H
#define MUSTER_MAIN_TELLING_PAGE_TEXT_H

extern const char page_text_before[]; /* its data, which is JSON or null */
extern const char page_text_after[];
extern const char page_text_policy[]; /* Content-Security-Policy */

#endif
