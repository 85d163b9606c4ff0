/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_admission.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/table.h"
#include "host/loop/clock.h"

/* So many addresses are remembered of those that were turned away. */
#define REFUSED_MAXIMUM 1024

struct store_admission {
    pthread_mutex_t lock;
    bool is_open;
    struct table *hosts; /* tcp_address_host -> something */
    struct table *refused;
};

struct store_admission *store_admission_new(bool is_open) {
    struct store_admission *admission = memory_allocate(sizeof *admission);
    pthread_mutex_init(&admission->lock, NULL);
    admission->is_open = is_open;
    admission->hosts = table_new(NULL);
    admission->refused = table_new(NULL);
    return admission;
}

void store_admission_free(struct store_admission *admission) {
    if (admission != NULL) {
        table_free(admission->hosts);
        table_free(admission->refused);
        pthread_mutex_destroy(&admission->lock);
        free(admission);
    }
}

static void replace(struct store_admission *admission, bool is_open, struct table *hosts_taken) {
    pthread_mutex_lock(&admission->lock);
    struct table *old = admission->hosts;
    admission->is_open = is_open;
    admission->hosts = hosts_taken;
    pthread_mutex_unlock(&admission->lock);
    table_free(old);
}

void store_admission_open(struct store_admission *admission) {
    replace(admission, true, table_new(NULL));
}

static bool read_address(const char *text, union tcp_address *out_address) {
    *out_address = (union tcp_address){.any = {.sa_family = AF_INET}};
    if (inet_pton(AF_INET, text, &out_address->ipv4.sin_addr) == 1) {
        return true;
    }
    *out_address = (union tcp_address){.ipv6 = {.sin6_family = AF_INET6}};
    return inet_pton(AF_INET6, text, &out_address->ipv6.sin6_addr) == 1;
}

size_t store_admission_limit(struct store_admission *admission, const char *addresses) {
    struct table *hosts = table_new(NULL);
    char *words = memory_duplicate_string(addresses);
    char *rest = words;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        union tcp_address address;
        uint8_t host[TCP_ADDRESS_HOST_BYTES];
        if (read_address(word, &address)) {
            tcp_address_host(&address, host);
            (void)table_put(hosts, (struct slice){host, sizeof host}, admission);
        }
    }
    size_t count = table_count(hosts);
    free(words);
    replace(admission, false, hosts);
    return count;
}

bool store_admission_admits(struct store_admission *admission, const union tcp_address *peer) {
    uint8_t host[TCP_ADDRESS_HOST_BYTES];
    tcp_address_host(peer, host);
    pthread_mutex_lock(&admission->lock);
    bool admits = admission->is_open ||
                  table_get(admission->hosts, (struct slice){host, sizeof host}) != NULL;
    pthread_mutex_unlock(&admission->lock);
    return admits;
}

bool store_admission_is_news(struct store_admission *admission, const union tcp_address *peer) {
    uint8_t host[TCP_ADDRESS_HOST_BYTES];
    tcp_address_host(peer, host);
    const struct slice key = {host, sizeof host};
    pthread_mutex_lock(&admission->lock);
    bool is_news = table_get(admission->refused, key) == NULL;
    if (table_count(admission->refused) >= REFUSED_MAXIMUM) {
        table_free(admission->refused);
        admission->refused = table_new(NULL);
    }
    (void)table_put(admission->refused, key, admission);
    pthread_mutex_unlock(&admission->lock);
    return is_news;
}

/* Job token. */

/* Loads OpenSSL's libcrypto when a job has a token. Linking it would add milliseconds and megabytes
 * to every start, and most jobs have none. */

/* The part of libcrypto's stable binary interface that is used here; its headers are often not
 * installed. */
struct crypto_library {
    void *handle;
    const void *(*sha256)(void); /* EVP_sha256 */
    unsigned char *(*hmac)(const void *digest, const void *key, int key_length,
        const unsigned char *data, size_t length, unsigned char *out_code,
        unsigned int *out_length);                                      /* HMAC */
    int (*compare)(const void *left, const void *right, size_t length); /* CRYPTO_memcmp */
};

/* POSIX, unlike C, allows a function pointer to be converted from dlsym's void *. */
#define LOAD(library, member, name)                                                                \
    ((library)->member = (__typeof__((library)->member))dlsym((library)->handle, name))

static void *open_any(void) {
    void *handle = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    return handle != NULL ? handle : dlopen("libcrypto.so.1.1", RTLD_NOW | RTLD_LOCAL);
}

/* libcrypto.so.3, else libcrypto.so.1.1. FAILURE_MISSING when it is not installed or lacks a
 * function. */
static enum failure_code crypto_library_load(
    struct crypto_library *out_library, struct failure *failure) {
    struct crypto_library loaded = {.handle = open_any()};
    if (loaded.handle == NULL) {
        return failure_set(failure, FAILURE_MISSING,
            "OpenSSL's libcrypto is needed for a job token (Debian: apt install libssl3): %s",
            dlerror());
    }
    LOAD(&loaded, sha256, "EVP_sha256");
    LOAD(&loaded, hmac, "HMAC");
    LOAD(&loaded, compare, "CRYPTO_memcmp");
    if (loaded.sha256 == NULL || loaded.hmac == NULL || loaded.compare == NULL) {
        (void)dlclose(loaded.handle);
        return failure_set(failure, FAILURE_MISSING,
            "libcrypto lacks functions of OpenSSL's, which are needed for a job token");
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

static void crypto_library_unload(struct crypto_library *library) {
    if (library->handle != NULL) {
        (void)dlclose(library->handle);
        library->handle = NULL;
    }
}

/* Job token. */

/* Shorter ones could be guessed by whoever has heard one proof. */
#define JOB_TOKEN_SHORTEST ((size_t)16)

struct job_token {
    struct crypto_library library;
    struct bytes secret;
    struct store_key key;
};

/* Computing. */

static bool authenticate(
    void *context, struct slice message, uint8_t out_code[static STORE_PROOF_CODE_BYTES]) {
    const struct job_token *token = context;
    unsigned int length = 0;
    return token->library.hmac(token->library.sha256(), token->secret.data,
               (int)token->secret.length, message.data, message.length, out_code,
               &length) != NULL &&
           length == STORE_PROOF_CODE_BYTES;
}

static bool equals(void *context, const uint8_t *left, const uint8_t *right) {
    const struct job_token *token = context;
    return token->library.compare(left, right, STORE_PROOF_CODE_BYTES) == 0;
}

static bool draw(void *context, uint8_t out_nonce[static STORE_PROOF_NONCE_BYTES]) {
    (void)context;
    return getrandom(out_nonce, STORE_PROOF_NONCE_BYTES, 0) == STORE_PROOF_NONCE_BYTES;
}

/* Reading. */

/* As a Secret that Kubernetes mounts. */
static bool is_mounted_secret(int fd, const struct stat *status) {
    struct statfs system;
    struct statvfs mount;
    return status->st_uid == 0 && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
           fstatfs(fd, &system) == 0 && fstatvfs(fd, &mount) == 0 &&
           (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) &&
           (mount.f_flag & ST_RDONLY) != 0;
}

static enum failure_code check_file(int fd, const char *path, struct failure *failure) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return failure_set_system(failure, errno, "cannot look at the token file '%s'", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID, "the token file '%s' is no file", path);
    }
    if (is_mounted_secret(fd, &status)) {
        return FAILURE_NONE;
    }
    if (status.st_uid != geteuid()) {
        return failure_set(failure, FAILURE_INVALID,
            "the token file '%s' belongs to user %lu and this is user %lu; give a file of this "
            "user's own",
            path, (unsigned long)status.st_uid, (unsigned long)geteuid());
    }
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return failure_set(failure, FAILURE_INVALID,
            "the token file '%s' has mode %04o, so that others may read or write it; chmod 600 it",
            path, (unsigned)status.st_mode & 07777U);
    }
    return FAILURE_NONE;
}

static enum failure_code read_all(
    int fd, const char *path, struct bytes *out_secret, struct failure *failure) {
    bytes_init(out_secret, 0);
    if (bytes_reserve(out_secret, JOB_TOKEN_LONGEST + 1) != FAILURE_NONE) {
        return FAILURE_LIMIT; /* there is no ceiling */
    }
    ssize_t length = 1;
    while (length > 0 && out_secret->length <= JOB_TOKEN_LONGEST) {
        length = read(
            fd, out_secret->data + out_secret->length, JOB_TOKEN_LONGEST + 1 - out_secret->length);
        out_secret->length += length > 0 ? (size_t)length : 0;
    }
    return length >= 0
               ? FAILURE_NONE
               : failure_set_system(failure, errno, "cannot read the token file '%s'", path);
}

static enum failure_code read_file(
    const char *path, struct bytes *out_secret, struct failure *failure) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot open the token file '%s'", path);
    }
    enum failure_code code = check_file(fd, path, failure);
    if (code == FAILURE_NONE) {
        code = read_all(fd, path, out_secret, failure);
    }
    close(fd);
    return code;
}

static enum failure_code read_secret(
    const char *text, const char *path, struct bytes *out_secret, struct failure *failure) {
    enum failure_code code = path != NULL ? read_file(path, out_secret, failure)
                                          : bytes_append(out_secret, text, strlen(text));
    while (out_secret->length > 0 && isspace(out_secret->data[out_secret->length - 1])) {
        out_secret->length--;
    }
    if (code == FAILURE_NONE &&
        (out_secret->length < JOB_TOKEN_SHORTEST || out_secret->length > JOB_TOKEN_LONGEST)) {
        bool is_short = out_secret->length < JOB_TOKEN_SHORTEST;
        code = failure_set(failure, FAILURE_INVALID,
            "the job token of %s%s has %s %zu bytes; give a random one of %zu to %zu bytes, as "
            "`openssl rand -hex 32` makes it",
            path != NULL ? "--token-file " : "MUSTER_JOB_TOKEN", path != NULL ? path : "",
            is_short ? "only" : "more than", is_short ? out_secret->length : JOB_TOKEN_LONGEST,
            JOB_TOKEN_SHORTEST, JOB_TOKEN_LONGEST);
    }
    return code;
}

/* Life. */

enum failure_code job_token_open(
    const char *text, const char *path, struct job_token **out_token, struct failure *failure) {
    struct job_token *token = memory_allocate(sizeof *token);
    token->key = (struct store_key){authenticate, equals, draw, token, STORE_KEY_TOKEN};
    enum failure_code code = read_secret(text, path, &token->secret, failure);
    if (code == FAILURE_NONE) {
        code = crypto_library_load(&token->library, failure);
    }
    if (code != FAILURE_NONE) {
        job_token_free(token);
        return code;
    }
    *out_token = token;
    return FAILURE_NONE;
}

void job_token_free(struct job_token *token) {
    if (token == NULL) {
        return;
    }
    if (token->secret.data != NULL) {
        explicit_bzero(token->secret.data, token->secret.capacity);
    }
    bytes_clear(&token->secret);
    crypto_library_unload(&token->library);
    free(token);
}

const struct store_key *job_token_key(const struct job_token *token) {
    return token == NULL ? NULL : &token->key;
}

/* Munge. */

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
