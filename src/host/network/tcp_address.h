/* SPDX-License-Identifier: BSD-3-Clause */
/* The address of a connection's other end, in readable form. */
#ifndef MUSTER_HOST_NETWORK_TCP_ADDRESS_H
#define MUSTER_HOST_NETWORK_TCP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define TCP_ADDRESS_TEXT_SIZE 64

/* Room for an address of either family. */
union tcp_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* The port in host byte order; 0 for an address of another family. */
int tcp_address_port(const union tcp_address *address);
void tcp_address_set_port(union tcp_address *address, int port);

/* The host, without the port: an IPv4 address in the form of IPv6, so that families compare. */
#define TCP_ADDRESS_HOST_BYTES 16
void tcp_address_host(
    const union tcp_address *address, uint8_t out_host[static TCP_ADDRESS_HOST_BYTES]);

/* The text of a host in that form. False when it is a loopback address, or none. */
bool tcp_address_write_host(
    const uint8_t host[static TCP_ADDRESS_HOST_BYTES], char out_text[static INET6_ADDRSTRLEN]);

/* Whether the hosts are the same; ports do not count, and neither does whether an IPv4 address came
 * on an IPv6 socket. */
bool tcp_address_is_same_host(const union tcp_address *left, const union tcp_address *right);

/* The same address; one of IPv4 in the form of IPv6 becomes one of IPv4. */
union tcp_address tcp_address_plain(const union tcp_address *address);

/* Whether a socket of this network namespace may have this host, so that a process here may be the
 * other end of a connection that comes from it. False is certain. True is not: some machines let
 * their sockets have any (net.ipv4.ip_nonlocal_bind). Costs three system calls, however many
 * addresses there are. */
bool tcp_address_may_be_here(const union tcp_address *address);

/* Whether the other end of a connection is a process of this machine: its address is loopback, or
 * the one that it has connected to. */
bool tcp_address_is_this_machine(const union tcp_address *peer, const union tcp_address *own);

/* Writes "192.0.2.1:29500" or "[2001:db8::1]:29500"; an IPv4 address that arrived on an IPv6 socket
 * is written as IPv4. */
void tcp_address_describe(
    const union tcp_address *address, char out_text[static TCP_ADDRESS_TEXT_SIZE]);

/* The host in numbers, without the port and without brackets. False where that is not all of it: a
 * link-local address needs the name of a network. */
bool tcp_address_write_numeric(
    const union tcp_address *address, char out_text[static INET6_ADDRSTRLEN]);

/* The same of this end of a connection. False also where the other end is of this machine, or there
 * is no connection. */
bool tcp_address_write_own(int fd, char out_text[static INET6_ADDRSTRLEN]);

#endif
