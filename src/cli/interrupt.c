/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};

static atomic_int last_signal;
static struct sigaction before[sizeof(caught) / sizeof(caught[0])];

static void on_signal(int number)
{
    atomic_store(&last_signal, number);
}

int cli_interrupt_taken(void)
{
    return atomic_exchange(&last_signal, 0);
}

int cli_interrupt_pending(void)
{
    return atomic_load(&last_signal);
}

void cli_interrupt_begin(void)
{
    /* no SA_RESTART: a wait must end */
    struct sigaction action = {.sa_handler = on_signal};

    atomic_store(&last_signal, 0);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        sigaction(caught[i], &action, &before[i]);
}

void cli_interrupt_end(void)
{
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        sigaction(caught[i], &before[i], NULL);
}
