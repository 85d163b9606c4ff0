/* SPDX-License-Identifier: BSD-3-Clause */
/* A program whose loop answers probes over HTTP, with libmuster: it is healthy while it has made
 * progress in the last SECONDS. Each line of its input is a piece of work.
 *
 *     ./probed_loop SECONDS
 *     curl http://127.0.0.1:PORT/health */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <muster/health.h>

static int64_t last_progress(void *context) {
    return *(const time_t *)context;
}

/* Returns whether there is more. */
static int work(time_t *progress) {
    char bytes[256];
    *progress = time(NULL);
    return read(STDIN_FILENO, bytes, sizeof bytes) > 0;
}

int main(int argument_count, char **arguments) {
    struct muster_health_settings settings = MUSTER_HEALTH_SETTINGS;
    struct muster_health_server *server;
    struct muster_failure failure;
    time_t progress = time(NULL);
    settings.alive = last_progress;
    settings.context = &progress;
    settings.timeout = argument_count == 2 ? atof(arguments[1]) : 60;
    if (muster_health_server_new(&settings, &server, &failure) != MUSTER_OK) {
        fprintf(stderr, "probed_loop: %s\n", failure.message);
        return EXIT_FAILURE;
    }
    printf("port %d\n", muster_health_server_port(server));
    fflush(stdout);
    struct pollfd places[] = {
        {muster_health_server_fd(server), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    do {
        (void)poll(places, 2, -1);
        (void)muster_health_server_process(server, NULL);
    } while (places[1].revents == 0 || work(&progress));
    muster_health_server_free(server);
    return EXIT_SUCCESS;
}
