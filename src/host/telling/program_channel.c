/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/telling/program_channel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <uv.h>

#include "base/memory.h"
#include "base/text.h"

struct program_channel {
    struct program_channel_settings settings;
    uv_poll_t *poll;
    struct event_descriptor *death; /* NULL: not watched */
    struct text waiting;
    size_t sent;            /* of what waits */
    unsigned char *message; /* what has come of it, … */
    size_t message_length;
    bool is_in_message; /* … if one has begun */
    bool has_asked;     /* for the end */
    bool is_gone;       /* the program, or its end of the socket */
};

static void watch(struct program_channel *channel);

static void forget_program(struct program_channel *channel) {
    if (channel->is_gone) {
        return;
    }
    channel->is_gone = true;
    uv_poll_stop(channel->poll);
    event_descriptor_free(channel->death);
    channel->death = NULL;
    text_clear(&channel->waiting);
    channel->sent = 0;
    if (!channel->has_asked) { /* a second signal kills */
        channel->settings.asked(channel->settings.context, SIGTERM);
    }
}

static void program_died(void *context) {
    forget_program(context);
}

static bool is_passing(int error) {
    return error == EAGAIN || error == EINTR;
}

static void take_byte(struct program_channel *channel, unsigned char byte) {
    if (channel->is_in_message) {
        channel->message[channel->message_length++] = byte;
    } else if (byte == PROGRAM_CHANNEL_MESSAGE) {
        channel->is_in_message = true;
    } else {
        channel->has_asked = true;
        channel->settings.asked(channel->settings.context, byte);
    }
    if (channel->is_in_message && channel->message_length == channel->settings.message_size) {
        channel->is_in_message = false;
        channel->message_length = 0;
        channel->settings.told(channel->settings.context, channel->message);
    }
}

static void read_requests(struct program_channel *channel) {
    unsigned char requests[1024];
    ssize_t length = recv(channel->settings.fd, requests, sizeof requests, MSG_DONTWAIT);
    if (length == 0 || (length < 0 && !is_passing(errno))) {
        forget_program(channel);
        return;
    }
    for (ssize_t i = 0; i < length; i++) {
        take_byte(channel, requests[i]);
    }
}

/* False: the rest has to wait. */
static bool send_some(struct program_channel *channel, int flags) {
    ssize_t length = send(channel->settings.fd, channel->waiting.data + channel->sent,
        channel->waiting.length - channel->sent, flags | MSG_NOSIGNAL);
    if (length < 0) {
        if (!is_passing(errno)) {
            forget_program(channel);
        }
        return false;
    }
    channel->sent += (size_t)length;
    if (channel->sent == channel->waiting.length) {
        text_clear(&channel->waiting);
        channel->sent = 0;
    }
    return true;
}

static void send_waiting(struct program_channel *channel) {
    while (channel->waiting.length > 0 && send_some(channel, MSG_DONTWAIT)) {
    }
}

static void is_ready(uv_poll_t *handle, int status, int events) {
    struct program_channel *channel = handle->data;
    (void)status; /* what is wrong shows when it is read */
    if ((events & UV_WRITABLE) != 0) {
        send_waiting(channel);
    }
    if ((events & ~UV_WRITABLE) != 0 || status != 0) {
        read_requests(channel);
    }
    watch(channel);
}

static void watch(struct program_channel *channel) {
    if (!channel->is_gone) {
        int events = UV_READABLE | (channel->waiting.length > 0 ? UV_WRITABLE : 0);
        uv_poll_start(channel->poll, events, is_ready);
    }
}

static void free_handle(uv_handle_t *handle) {
    free(handle);
}

enum failure_code program_channel_new(struct event_loop *loop,
    const struct program_channel_settings *settings, struct program_channel **out_channel,
    struct failure *failure) {
    uv_poll_t *poll = memory_allocate(sizeof *poll);
    int status = event_loop_init_poll(loop, poll, settings->fd);
    if (status != 0) {
        free(poll);
        return failure_set_system(failure, -status, "cannot watch descriptor %d", settings->fd);
    }
    struct program_channel *channel = memory_allocate(sizeof *channel);
    channel->settings = *settings;
    channel->message = memory_allocate(settings->message_size);
    channel->poll = poll;
    poll->data = channel;
    if (settings->program >= 0 && event_descriptor_new(loop, settings->program, program_died,
                                      channel, &channel->death, failure) != FAILURE_NONE) {
        channel->death = NULL; /* the socket's end tells it, too */
    }
    watch(channel);
    *out_channel = channel;
    return FAILURE_NONE;
}

/* What waits has no room for a line more, or there is no memory to make some. */
static bool is_full(const struct program_channel *channel, size_t length) {
    const struct text *waiting = &channel->waiting;
    size_t needed = waiting->length + length + 1;
    return waiting->length - channel->sent + length > PROGRAM_CHANNEL_CEILING ||
           (needed > waiting->capacity && !spare_memory_has_room_for(2 * needed));
}

void program_channel_tell(struct program_channel *channel, const char *line, bool may_be_lost) {
    if (channel->is_gone || (may_be_lost && is_full(channel, strlen(line)))) {
        return;
    }
    text_append(&channel->waiting, line);
    send_waiting(channel);
    watch(channel);
}

/* The loop does not run any more. */
static void wait_for_program(struct program_channel *channel) {
    struct pollfd fds[] = {
        {.fd = channel->settings.fd, .events = POLLOUT},
        {.fd = channel->settings.program, .events = POLLIN},
    };
    while (!channel->is_gone && channel->waiting.length > 0) {
        int ready = poll(fds, 2, -1);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready < 0 || fds[1].revents != 0) {
            return;
        }
        send_waiting(channel);
    }
}

static void ask_nobody(void *context, int signal) {
    (void)context;
    (void)signal;
}

static void tell_nobody(void *context, const void *message) {
    (void)context;
    (void)message;
}

void program_channel_free(struct program_channel *channel) {
    if (channel == NULL) {
        return;
    }
    channel->settings.asked = ask_nobody;
    channel->settings.told = tell_nobody;
    wait_for_program(channel);
    event_descriptor_free(channel->death);
    uv_close((uv_handle_t *)channel->poll, free_handle);
    text_clear(&channel->waiting);
    free(channel->message);
    free(channel);
}
