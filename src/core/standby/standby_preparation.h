/* SPDX-License-Identifier: BSD-3-Clause */
/* What a standby worker is prepared with: the list of what it imports, and its environment. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_PREPARATION_H
#define MUSTER_CORE_STANDBY_STANDBY_PREPARATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/table.h"
#include "base/text.h"

/* What the workers of a job have imported: names of modules and where each was found, in the order
 * of the first import, as one value. A standby worker imports this list before it waits. The text
 * of it has one line for each module, NAME<tab>ORIGIN, with an empty origin where there is none. It
 * is the form in which the list is given to a standby worker, and in which nodes may give it to
 * each other.
 *
 * Some of them may not be imported before the program runs. Such a one is left out, and its line,
 * which stays, becomes NAME#ORIGIN. A line =NUMBER VARIABLE<tab>VALUE
 * says that a library has changed the environment there. The value becomes one of question marks
 * only, which means that it is not known, when two workers tell it differently.
 *
 * A line NAME!ORIGIN, or =NUMBER VARIABLE!VALUE, is what another node has told, and no worker of
 * this one has done yet. A standby worker imports such a module only out of its interpreter's own
 * libraries, and takes such a value as one that is not known: nobody else decides what is in its
 * environment. The line becomes a common one when a worker of this node records the same.
 *
 * A line __line__.DIGEST<tab> says that workers of the program with this digest have come to its
 * line (muster.standby.wait): a standby worker of such a program runs it up to there instead.
 *
 * The names come from workers and other nodes, and so from anybody. A name of a module or a
 * variable that cannot be one is left out, as is an origin, and what does not fit into the list.
 * What another node tells is left out, too, where it does not come from libraries. A value that is
 * no word of a few letters or digits is not kept, and neither are the name and the value of a
 * variable that may be a secret: of them only the line =NUMBER ?<tab>? remains. The work is in
 * proportion to what is read. */

/* Bytes of the text of a list, and of a name and an origin in it. */
#define LEARNED_LIST_TEXT_MAXIMUM (1024 * 1024)
#define LEARNED_LIST_NAME_MAXIMUM 256
#define LEARNED_LIST_ORIGIN_MAXIMUM 1024
/* Letters or digits of a value that is kept. */
#define LEARNED_LIST_VALUE_MAXIMUM 5
/* Lines, and those of variables among them. All of PyTorch are some 3,000 modules. */
#define LEARNED_LIST_LINES_MAXIMUM 20000
#define LEARNED_LIST_CHANGES_MAXIMUM 256
/* Bytes of what nodes give to each other. 1,900 modules of PyTorch take 160 KB. */
#define LEARNED_LIST_SHARED_MAXIMUM (200 * 1024)

/* What the name of a program's line begins with. */
#define LEARNED_LIST_LINE "__line__."

struct learned_list {
    struct table *names; /* of the lines of the text */
    struct text text;
    size_t changes; /* of the environment, among the lines */
    bool is_full;   /* there was one too many */
    struct text shared;
};

void learned_list_init(struct learned_list *list);
void learned_list_clear(struct learned_list *list);

/* Adds what is new in the text of a list, which may be cut off anywhere: what comes after the last
 * newline is not read. Returns how many modules were new. */
size_t learned_list_add_text(struct learned_list *list, struct slice text);
/* The same for what another node has told. A text that is too long to be shared is not read. */
size_t learned_list_add_told(struct learned_list *list, struct slice text);

/* Adds what all of these lists have, in the order of the first; of lines that are of a variable or
 * of what is left out those of the first. */
void learned_list_add_common(
    struct learned_list *list, const struct learned_list *const *lists, size_t count);

/* Leaves a module out from now on. False: it is already, or the name is none of a module. */
bool learned_list_leave_out(struct learned_list *list, struct slice name);

/* How many programs' lines it has that are not left out. */
size_t learned_list_lines(const struct learned_list *list);

size_t learned_list_count(const struct learned_list *list);
/* Good until the list changes. */
struct slice learned_list_text(const struct learned_list *list);
/* What this node tells others: programs' lines, and the beginning of the rest of the text, in whole
 * lines, without what only others have told. Good until it is made again. */
struct slice learned_list_shared_text(struct learned_list *list);

/* The environment of a standby worker. It is that of a worker of the last attempt without the names
 * that belong to a round: those come when the standby worker becomes a worker. All other names must
 * be right from the beginning, because what is imported may have read them. */

/* It tells a worker where the page is in which it says how far it is (wire/telling/progress_page).
 */
#define PROGRESS_VARIABLE "MUSTER_PROGRESS"

enum standby_role {
    STANDBY_RECORD, /* a worker, which records what it imports */
    STANDBY_SPARE,  /* a standby worker */
    STANDBY_ALONE,  /* a worker of a job without them, whose optimizer's steps are counted */
};

struct standby_dress {
    enum standby_role role;
    const char *hook_directory; /* put in front of PYTHONPATH; NULL: the program is not Python */
    int evidence_signal;        /* Python shall say its stacks when it gets this signal; 0: none */
    double rest;   /* how many times as long as it has worked a standby worker rests when others
                    * want its CPU */
    bool is_alone; /* no workers run beside it until it is ready */
    int parent_of; /* it is a warm parent, whose children this process adopts; 0: it is none */
};

/* Adds to the environment of a worker what makes it a worker that records, or a standby worker. For
 * the latter, the names of the round go. */
void standby_environment_dress(struct text_list *environment, const struct standby_dress *dress);

/* Makes the environment of one worker that of all workers of its node. */
void standby_environment_drop_rank(struct text_list *environment);

/* Takes both variables out of an environment. An agent that is started by a worker inherits what
 * was said to that worker. */
void standby_environment_undress(struct text_list *environment);

/* Why a standby worker that was started with the environment of worker `before` may not become
 * worker `now`: the first variable that is different, borrowed from one of them, with its value
 * behind it. NULL: it may. Neither is dressed. */
const char *standby_environment_difference(
    const struct text_list *before, const struct text_list *now);

#endif
