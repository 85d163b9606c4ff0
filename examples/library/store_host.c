/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that serves PyTorch's store in its own loop, with libmuster, until its input ends:
 *
 *     ./store_host
 *     muster store get --host 127.0.0.1 --port PORT KEY */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <muster/store_server.h>

static int is_at_end(void) {
    char bytes[256];
    return read(STDIN_FILENO, bytes, sizeof bytes) <= 0;
}

int main(void) {
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    struct muster_store_server *server;
    struct muster_failure failure;
    settings.is_polled = 1;
    if (muster_store_server_new(&settings, &server, &failure) != MUSTER_OK) {
        fprintf(stderr, "store_host: %s\n", failure.message);
        return EXIT_FAILURE;
    }
    printf("port %d\n", muster_store_server_port(server));
    fflush(stdout);
    struct pollfd places[] = {
        {muster_store_server_fd(server), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    do {
        (void)poll(places, 2, -1);
        (void)muster_store_server_process(server, NULL);
    } while (places[1].revents == 0 || !is_at_end());
    muster_store_server_free(server);
    return EXIT_SUCCESS;
}
