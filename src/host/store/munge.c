/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/munge.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"

/* Where the daemon listens unless it is told otherwise, with Debian's and others' packages. */
#define MUNGE_LIBRARY_SOCKET "/run/munge/munge.socket.2"

/* Of munge.h. */
#define OPTION_SOCKET 8
enum munge_status {
    MUNGE_SUCCESS = 0,
    MUNGE_BAD_CREDENTIAL = 8, /* and up to the last: about the credential, not about the daemon */
    MUNGE_INVALID = 14,
    MUNGE_EXPIRED = 15,
    MUNGE_REWOUND = 16,
    MUNGE_REPLAYED = 17,
    MUNGE_UNAUTHORIZED = 18,
};

/* The part of libmunge's stable binary interface that is used here; its header is often not
 * installed. Never unloaded: a thread that hangs in it may be left behind. */
struct munge_library {
    void *handle;
    int (*encode)(char **out_credential, void *settings, const void *payload, int length);
    int (*decode)(const char *credential, void *settings, void **out_payload, int *out_length,
        uid_t *out_user, gid_t *out_group);
    void *(*settings_new)(void);
    void (*settings_free)(void *settings);
    int (*settings_set)(void *settings, int option, ...);
    const char *(*settings_error)(void *settings);
    const char *(*error)(int code);
};

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member, name)                                                                \
    ((library)->member = (__typeof__((library)->member))dlsym((library)->handle, name))

static bool is_complete(const struct munge_library *library) {
    return library->encode != NULL && library->decode != NULL && library->settings_new != NULL &&
           library->settings_free != NULL && library->settings_set != NULL &&
           library->settings_error != NULL && library->error != NULL;
}

/* `library` is the name of a file for tests; NULL: libmunge.so.2. FAILURE_MISSING when it is not
 * installed or lacks a function. */
static enum failure_code munge_library_load(
    const char *library, struct munge_library *out_library, struct failure *failure) {
    const char *name = library != NULL ? library : "libmunge.so.2";
    struct munge_library loaded = {.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL) {
        return failure_set(failure, FAILURE_MISSING,
            "munge's library is not installed here (Debian: apt install libmunge2): %s", dlerror());
    }
    LOAD(&loaded, encode, "munge_encode");
    LOAD(&loaded, decode, "munge_decode");
    LOAD(&loaded, settings_new, "munge_ctx_create");
    LOAD(&loaded, settings_free, "munge_ctx_destroy");
    LOAD(&loaded, settings_set, "munge_ctx_set");
    LOAD(&loaded, settings_error, "munge_ctx_strerror");
    LOAD(&loaded, error, "munge_strerror");
    if (!is_complete(&loaded)) {
        (void)dlclose(loaded.handle);
        return failure_set(
            failure, FAILURE_MISSING, "%s lacks functions of munge's client library", name);
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

/* Also where the library has no memory for settings: it says so itself when it is asked. */
static void *settings_for(const struct munge_library *library, const char *socket) {
    void *settings = library->settings_new();
    if (settings != NULL) {
        (void)library->settings_set(settings, OPTION_SOCKET, socket);
    }
    return settings;
}

static void explain(
    const struct munge_library *library, void *settings, int status, struct failure *failure) {
    const char *words = settings != NULL ? library->settings_error(settings) : NULL;
    words = words != NULL ? words : library->error(status);
    (void)failure_set(failure, FAILURE_SYSTEM, "%s", words != NULL ? words : "munge has failed");
}

static void end_settings(const struct munge_library *library, void *settings) {
    if (settings != NULL) {
        library->settings_free(settings);
    }
}

/* A credential with this payload; the caller clears it. `socket` is the path of the daemon's.
 * FAILURE_SYSTEM with munge's words. */
static enum failure_code munge_library_encode(const struct munge_library *library,
    const char *socket, struct slice payload, struct bytes *out_credential,
    struct failure *failure) {
    char *credential = NULL;
    void *settings = settings_for(library, socket);
    int status = library->encode(&credential, settings, payload.data, (int)payload.length);
    enum failure_code code = FAILURE_NONE;
    if (status == MUNGE_SUCCESS && credential != NULL) {
        bytes_init(out_credential, 0);
        code = bytes_append(out_credential, credential, strlen(credential));
    } else {
        explain(library, settings, status, failure);
        code = FAILURE_SYSTEM;
    }
    free(credential);
    end_settings(library, settings);
    return code;
}

static enum store_credential_verdict verdict_of(int status) {
    switch (status) {
    case MUNGE_SUCCESS:
        return STORE_CREDENTIAL_ACCEPTED;
    case MUNGE_EXPIRED:
        return STORE_CREDENTIAL_OLD;
    case MUNGE_REWOUND:
        return STORE_CREDENTIAL_FUTURE;
    case MUNGE_REPLAYED:
        return STORE_CREDENTIAL_USED;
    case MUNGE_UNAUTHORIZED:
        return STORE_CREDENTIAL_OTHER_USER;
    default:
        return status >= MUNGE_BAD_CREDENTIAL && status <= MUNGE_INVALID
                   ? STORE_CREDENTIAL_OTHER_KEY
                   : STORE_CREDENTIAL_UNCHECKED;
    }
}

/* munge gives the payload also with some credentials that it refuses. */
static enum store_credential_verdict munge_library_decode(const struct munge_library *library,
    const char *socket, struct slice credential, struct bytes *out_payload, uid_t *out_user,
    struct failure *failure) {
    char *text = memory_allocate(credential.length + 1); /* zeroed, so it ends */
    memcpy(text, credential.data, credential.length);
    void *payload = NULL;
    int length = 0;
    uid_t user = (uid_t)-1;
    gid_t group = (gid_t)-1;
    void *settings = settings_for(library, socket);
    int status = library->decode(text, settings, &payload, &length, &user, &group);
    enum store_credential_verdict verdict = verdict_of(status);
    if (verdict == STORE_CREDENTIAL_ACCEPTED) {
        bytes_init(out_payload, 0);
        (void)!bytes_append(out_payload, payload, length > 0 ? (size_t)length : 0);
        *out_user = user;
    } else {
        explain(library, settings, status, failure);
    }
    free(payload);
    free(text);
    end_settings(library, settings);
    return verdict;
}

/* Munge identity. */

#define FIRST_VISIT_PAUSE_MILLISECONDS 250

struct munge_identity {
    struct munge_library library;
    char *socket;
    char *job;
    uid_t user;
    struct store_key key;
};

static bool draw(void *context, uint8_t out_nonce[static STORE_PROOF_NONCE_BYTES]) {
    (void)context;
    return getrandom(out_nonce, STORE_PROOF_NONCE_BYTES, 0) == STORE_PROOF_NONCE_BYTES;
}

/* One visit to the daemon. It owns everything, as its thread may be left behind. */
struct visit {
    struct munge_library library;
    char *socket;
    bool is_first;               /* the user is not known yet, but asked for */
    struct duration persistence; /* then: how long to try again */
    uid_t user;
    struct bytes presented;
    struct bytes expected;
    struct bytes own; /* the payload of the credential that is to be made; empty: none is */
    struct bytes credential;
    enum store_credential_verdict verdict;
    struct failure failure;
    munge_answered *answered;
    void *context;
};

static struct visit *visit_new(const struct munge_identity *identity) {
    struct visit *visit = memory_allocate(sizeof *visit);
    visit->library = identity->library;
    visit->socket = memory_duplicate_string(identity->socket);
    visit->user = identity->user;
    return visit;
}

static void visit_free(void *subject) {
    struct visit *visit = subject;
    free(visit->socket);
    bytes_clear(&visit->presented);
    bytes_clear(&visit->expected);
    bytes_clear(&visit->own);
    bytes_clear(&visit->credential);
    free(visit);
}

static enum store_credential_verdict check(struct visit *visit) {
    struct bytes payload = {0};
    uid_t user = (uid_t)-1;
    enum store_credential_verdict verdict = munge_library_decode(&visit->library, visit->socket,
        bytes_slice(&visit->presented), &payload, &user, &visit->failure);
    if (verdict == STORE_CREDENTIAL_ACCEPTED && visit->is_first) {
        visit->user = user;
    }
    if (verdict == STORE_CREDENTIAL_ACCEPTED && user != visit->user) {
        verdict = STORE_CREDENTIAL_OTHER_USER;
        (void)failure_set(&visit->failure, FAILURE_INVALID, "user %lu, and this is user %lu",
            (unsigned long)user, (unsigned long)visit->user);
    }
    if (verdict == STORE_CREDENTIAL_ACCEPTED) {
        verdict = store_credential_judge(bytes_slice(&payload), bytes_slice(&visit->expected));
    }
    bytes_clear(&payload);
    return verdict;
}

static void make(struct visit *visit) {
    if (munge_library_encode(&visit->library, visit->socket, bytes_slice(&visit->own),
            &visit->credential, &visit->failure) != FAILURE_NONE) {
        visit->verdict = STORE_CREDENTIAL_UNCHECKED;
    }
}

static void run_visit(void *subject) {
    struct visit *visit = subject;
    if (visit->presented.length > 0) {
        visit->verdict = check(visit);
    }
    if (visit->own.length > 0 && visit->verdict == STORE_CREDENTIAL_ACCEPTED) {
        make(visit);
    }
}

static void try_first_visit(struct visit *visit) {
    visit->verdict = STORE_CREDENTIAL_ACCEPTED;
    visit->failure = (struct failure){0};
    bytes_clear(&visit->credential);
    bytes_clear(&visit->presented);
    make(visit);
    if (visit->verdict == STORE_CREDENTIAL_ACCEPTED) {
        (void)!bytes_append(&visit->presented, visit->credential.data, visit->credential.length);
        visit->verdict = check(visit);
    }
}

/* Learns as whom the daemon knows this process, from a credential to itself. A daemon may be
 * starting anew, or be busy with others. */
static void run_first_visit(void *subject) {
    struct visit *visit = subject;
    struct instant last = instant_after(clock_now(), visit->persistence);
    const struct timespec pause = {.tv_nsec = FIRST_VISIT_PAUSE_MILLISECONDS * 1000000L};
    try_first_visit(visit);
    while (visit->verdict == STORE_CREDENTIAL_UNCHECKED && instant_is_before(clock_now(), last)) {
        (void)nanosleep(&pause, NULL);
        try_first_visit(visit);
    }
}

static struct store_proof self_addressed(void) {
    struct store_proof proof = {0};
    (void)!draw(NULL, proof.client_nonce);
    return proof;
}

static enum failure_code visit_first(struct munge_identity *identity,
    const struct munge_identity_settings *settings, struct failure *failure) {
    const struct store_proof proof = self_addressed();
    struct visit *visit = visit_new(identity);
    visit->is_first = true;
    visit->persistence = settings->persistence;
    struct slice job = slice_from_string(identity->job);
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_CLIENT, &visit->own);
    store_credential_payload(&proof, job, STORE_CREDENTIAL_OF_CLIENT, &visit->expected);
    const struct blocking_task task = {run_first_visit, visit_free, visit};
    enum failure_code code =
        blocking_task_run_within(&task, settings->patience, settings->watch, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "munge's daemon at %s", identity->socket);
    }
    identity->user = visit->user;
    if (visit->verdict != STORE_CREDENTIAL_ACCEPTED) {
        bool is_away = visit->verdict == STORE_CREDENTIAL_UNCHECKED;
        code = failure_set(failure, FAILURE_SYSTEM, "munge's daemon at %s %s: %s%s",
            identity->socket, is_away ? "does not answer" : "refuses its own credential",
            visit->failure.message, is_away ? "; start munged" : "");
    }
    visit_free(visit);
    return code;
}

/* Life. */

static enum failure_code find_socket(const char *socket, struct failure *failure) {
    if (access(socket, F_OK) == 0) {
        return FAILURE_NONE;
    }
    int error = errno;
    if (error != ENOENT && error != ENOTDIR) {
        return failure_set(failure, FAILURE_UNSUPPORTED, "cannot look for munge's socket %s: %s",
            socket, strerror(error));
    }
    return failure_set(failure, FAILURE_MISSING,
        "there is no socket of munge's daemon at %s; start munged, or in a container mount its "
        "directory, or set MUSTER_MUNGE_SOCKET",
        socket);
}

static enum failure_code load_library(const struct munge_identity_settings *settings,
    struct munge_identity *identity, struct failure *failure) {
    struct failure cause = {0};
    if (munge_library_load(settings->library, &identity->library, &cause) == FAILURE_NONE) {
        return FAILURE_NONE;
    }
    return failure_set(failure, FAILURE_UNSUPPORTED, "munge's socket is at %s: %s",
        identity->socket, cause.message);
}

enum failure_code munge_identity_open(const struct munge_identity_settings *settings,
    struct munge_identity **out_identity, struct failure *failure) {
    struct munge_identity *identity = memory_allocate(sizeof *identity);
    const char *socket = settings->socket != NULL ? settings->socket : MUNGE_LIBRARY_SOCKET;
    identity->socket = memory_duplicate_string(socket);
    identity->job = memory_duplicate_string(settings->job);
    identity->key = (struct store_key){.draw = draw, .context = identity, .kind = STORE_KEY_MUNGE};
    enum failure_code code = find_socket(socket, failure);
    if (code == FAILURE_NONE) {
        code = load_library(settings, identity, failure);
    }
    if (code == FAILURE_NONE) {
        code = visit_first(identity, settings, failure);
    }
    if (code != FAILURE_NONE) {
        munge_identity_free(identity);
        return code;
    }
    *out_identity = identity;
    return FAILURE_NONE;
}

void munge_identity_free(struct munge_identity *identity) {
    if (identity != NULL) {
        free(identity->socket);
        free(identity->job);
        free(identity);
    }
}

const struct store_key *munge_identity_key(const struct munge_identity *identity) {
    return identity == NULL ? NULL : &identity->key;
}

/* Questions. */

static void done(void *context, void *subject) {
    const struct visit *visit = subject;
    const struct store_credential_answer answer = {
        .verdict = visit->verdict, .credential = bytes_slice(&visit->credential)};
    (void)context;
    visit->answered(visit->context, &answer, visit->failure.message);
}

enum failure_code munge_identity_ask(struct blocking_pool *pool,
    const struct munge_question *question, munge_answered *answered, void *context,
    struct blocking_call **out_call, struct failure *failure) {
    const struct munge_identity *identity = question->key->context;
    struct visit *visit = visit_new(identity);
    struct slice job = slice_from_string(identity->job);
    enum store_credential_side other = question->side == STORE_CREDENTIAL_OF_CLIENT
                                           ? STORE_CREDENTIAL_OF_SERVER
                                           : STORE_CREDENTIAL_OF_CLIENT;
    visit->answered = answered;
    visit->context = context;
    if (question->presented.length > 0) {
        (void)!bytes_append(
            &visit->presented, question->presented.data, question->presented.length);
        store_credential_payload(question->proof, job, other, &visit->expected);
    }
    if (question->makes_own) {
        store_credential_payload(question->proof, job, question->side, &visit->own);
    }
    const struct blocking_task task = {run_visit, visit_free, visit};
    return blocking_pool_send(
        pool, &task, &(struct blocking_answer){done, NULL}, out_call, failure);
}
