/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/health_endpoint.h"

#include <dlfcn.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/network/tcp_listener.h"
#include "wire/telling/http_host.h"

/* Loads libmicrohttpd when it is needed. Linking it would load a TLS library at every start, which
 * would take longer than the rest of the start, and most launchers serve no HTTP. */

struct http_library {
    void *handle;
    __typeof__(MHD_start_daemon) *start_daemon;
    __typeof__(MHD_stop_daemon) *stop_daemon;
    __typeof__(MHD_get_daemon_info) *get_daemon_info;
    __typeof__(MHD_get_connection_info) *get_connection_info;
    __typeof__(MHD_lookup_connection_value) *lookup_connection_value;
    __typeof__(MHD_run) *run;
    __typeof__(MHD_get_timeout) *get_timeout;
    __typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
    __typeof__(MHD_add_response_header) *add_response_header;
    __typeof__(MHD_queue_response) *queue_response;
    __typeof__(MHD_destroy_response) *destroy_response;
};

#define HTTP_LIBRARY_NAME "libmicrohttpd.so.12"

#define LOAD(library, name)                                                                        \
    (((library)->name = (__typeof__((library)->name))dlsym((library)->handle, "MHD_" #name)) !=    \
        NULL)

static bool load_functions(struct http_library *library) {
    return LOAD(library, start_daemon) && LOAD(library, stop_daemon) &&
           LOAD(library, get_daemon_info) && LOAD(library, get_connection_info) &&
           LOAD(library, lookup_connection_value) && LOAD(library, run) &&
           LOAD(library, get_timeout) && LOAD(library, create_response_from_buffer) &&
           LOAD(library, add_response_header) && LOAD(library, queue_response) &&
           LOAD(library, destroy_response);
}

static enum failure_code http_library_load(
    const char *library, struct http_library *out_library, struct failure *failure) {
    struct http_library loaded = {.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (loaded.handle == NULL) {
        return failure_set(
            failure, FAILURE_MISSING, "libmicrohttpd is needed for it: %s", dlerror());
    }
    if (!load_functions(&loaded)) {
        (void)dlclose(loaded.handle);
        return failure_set(
            failure, FAILURE_MISSING, "%s lacks functions of libmicrohttpd", library);
    }
    *out_library = loaded;
    return FAILURE_NONE;
}

static void http_library_unload(struct http_library *library) {
    if (library->handle != NULL) {
        (void)dlclose(library->handle);
        library->handle = NULL;
    }
}

/* Health endpoint. */

#define HEALTH_ENDPOINT_SECONDS_PER_CONNECTION 10

/* A connection that has not been told to go. */
struct guest {
    struct guest *next; /* came later */
    struct guest *previous;
    int fd;
};

struct health_endpoint {
    struct health_endpoint_settings settings;
    struct http_library library;
    struct event_loop *loop;
    struct MHD_Daemon *daemon;
    struct event_descriptor *watch; /* watches the daemon's epoll descriptor */
    struct event_timer *timer;
    struct guest *oldest;
    struct guest *newest;
    size_t guest_count;
    int port;
};

static void remove_guest(struct health_endpoint *endpoint, struct guest *guest) {
    *(guest->previous != NULL ? &guest->previous->next : &endpoint->oldest) = guest->next;
    *(guest->next != NULL ? &guest->next->previous : &endpoint->newest) = guest->previous;
    endpoint->guest_count--;
}

static struct guest *add_guest(struct health_endpoint *endpoint, int fd) {
    struct guest *guest = memory_allocate(sizeof *guest);
    *guest = (struct guest){.previous = endpoint->newest, .fd = fd};
    *(endpoint->newest != NULL ? &endpoint->newest->next : &endpoint->oldest) = guest;
    endpoint->newest = guest;
    endpoint->guest_count++;
    return guest;
}

/* The library has no call that closes a connection, but it closes one that has been shut down. */
static void let_oldest_go(struct health_endpoint *endpoint) {
    struct guest *guest = endpoint->oldest;
    (void)shutdown(guest->fd, SHUT_RDWR);
    remove_guest(endpoint, guest);
    guest->fd = -1;
}

static void connection_changed(void *context, struct MHD_Connection *connection, void **guest,
    enum MHD_ConnectionNotificationCode code) {
    struct health_endpoint *endpoint = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            endpoint->library.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *guest = add_guest(endpoint, info->connect_fd);
        if (endpoint->guest_count > HEALTH_ENDPOINT_KEPT_CONNECTIONS) {
            let_oldest_go(endpoint);
        }
        return;
    }
    struct guest *gone = *guest;
    if (gone->fd != -1) {
        remove_guest(endpoint, gone);
    }
    free(gone);
}

static enum MHD_Result send_answer(struct health_endpoint *endpoint,
    struct MHD_Connection *connection, const struct health_answer *answer) {
    const struct http_library *library = &endpoint->library;
    char *body = memory_duplicate_string(text_string(&answer->body));
    struct MHD_Response *response =
        library->create_response_from_buffer(answer->body.length, body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(body);
        return MHD_NO;
    }
    library->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
    library->add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    library->add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    for (size_t i = 0; i < answer->header_count; i++) {
        library->add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    }
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        library->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    enum MHD_Result result =
        library->queue_response(connection, (unsigned int)answer->status, response);
    library->destroy_response(response);
    return result;
}

/* Answers as soon as it has the header of a request; it does not wait for a body. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_size,
    void **request) {
    struct health_endpoint *endpoint = context;
    struct health_answer answer = {.content_type = "text/plain; charset=utf-8"};
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)request;
    const char *host = endpoint->library.lookup_connection_value(
        connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    static const struct text_list none = {0};
    const struct text_list *names = endpoint->settings.names;
    if (!http_host_is_admitted(host, names != NULL ? names : &none)) {
        answer.status = MHD_HTTP_MISDIRECTED_REQUEST;
        text_append(&answer.body,
            "this is not served under the name that was asked for; ask by this machine's name or "
            "address, or give the agent the name in MUSTER_HEALTH_CHECK_HOSTS\n");
    } else if (text_equals(method, MHD_HTTP_METHOD_GET) ||
               text_equals(method, MHD_HTTP_METHOD_HEAD)) {
        answer.authorization = endpoint->library.lookup_connection_value(
            connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
        endpoint->settings.answer(endpoint->settings.context, url, &answer);
    } else {
        answer.status = MHD_HTTP_METHOD_NOT_ALLOWED;
        text_append(&answer.body, "GET or HEAD only\n");
    }
    enum MHD_Result result = send_answer(endpoint, connection, &answer);
    text_clear(&answer.body);
    return result;
}

static unsigned int count_connections(const struct health_endpoint *endpoint) {
    const union MHD_DaemonInfo *info =
        endpoint->library.get_daemon_info(endpoint->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info == NULL ? 0 : info->num_connections;
}

/* Runs the daemon until it has no more work, then sets the timer for its next run. The daemon
 * checks only at the start of a run whether there is room for new connections. So a run in which
 * connections end is followed by another run. */
static void run_daemon(void *context) {
    struct health_endpoint *endpoint = context;
    MHD_UNSIGNED_LONG_LONG milliseconds;
    unsigned int before;
    do {
        before = count_connections(endpoint);
        endpoint->library.run(endpoint->daemon);
    } while (count_connections(endpoint) < before);
    if (endpoint->library.get_timeout(endpoint->daemon, &milliseconds) == MHD_YES) {
        struct duration wait = duration_from_milliseconds((int64_t)milliseconds);
        event_timer_set(endpoint->timer, instant_after(event_loop_now(endpoint->loop), wait));
    } else {
        event_timer_stop(endpoint->timer);
    }
}

static enum failure_code start_daemon(struct health_endpoint *endpoint, struct failure *failure) {
    int fd;
    enum failure_code code = tcp_listener_open(
        endpoint->settings.address, endpoint->settings.port, &fd, &endpoint->port, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    endpoint->daemon = endpoint->library.start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle,
        endpoint, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned int)HEALTH_ENDPOINT_MAXIMUM_CONNECTIONS, MHD_OPTION_NOTIFY_CONNECTION,
        connection_changed, endpoint, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned int)HEALTH_ENDPOINT_SECONDS_PER_CONNECTION, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEALTH_ENDPOINT_BYTES_PER_CONNECTION, MHD_OPTION_END);
    if (endpoint->daemon == NULL) {
        close(fd);
        return failure_set(failure, FAILURE_SYSTEM, "libmicrohttpd does not start");
    }
    const union MHD_DaemonInfo *info =
        endpoint->library.get_daemon_info(endpoint->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        return failure_set(failure, FAILURE_SYSTEM, "libmicrohttpd was built without epoll");
    }
    return event_descriptor_new(
        endpoint->loop, info->epoll_fd, run_daemon, endpoint, &endpoint->watch, failure);
}

enum failure_code health_endpoint_new(struct event_loop *loop,
    const struct health_endpoint_settings *settings, struct health_endpoint **out_endpoint,
    struct failure *failure) {
    struct health_endpoint *endpoint = memory_allocate(sizeof *endpoint);
    *endpoint = (struct health_endpoint){.settings = *settings, .loop = loop};
    endpoint->timer = event_timer_new(loop, run_daemon, endpoint);
    enum failure_code code = http_library_load(HTTP_LIBRARY_NAME, &endpoint->library, failure);
    if (code == FAILURE_NONE) {
        code = start_daemon(endpoint, failure);
    }
    if (code != FAILURE_NONE) {
        health_endpoint_free(endpoint);
        return code;
    }
    *out_endpoint = endpoint;
    return FAILURE_NONE;
}

void health_endpoint_free(struct health_endpoint *endpoint) {
    if (endpoint == NULL) {
        return;
    }
    event_descriptor_free(endpoint->watch);
    event_timer_free(endpoint->timer);
    if (endpoint->daemon != NULL) {
        endpoint->library.stop_daemon(endpoint->daemon);
    }
    http_library_unload(&endpoint->library);
    free(endpoint);
}

int health_endpoint_port(const struct health_endpoint *endpoint) {
    return endpoint->port;
}
