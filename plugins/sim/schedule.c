/* The worst order that the streams allow, so that a wait the host forgot shows.
 *
 * With TENON_SIM_DELAY the head of a stream is held back for a random time, up to that many
 * microseconds. A command queued later on another stream overtakes it and runs at once. Whatever
 * the host queued first without making the later command wait for it thus tends to happen last: the
 * reader finds poison or stale bytes, the writer destroys what was still to be read.
 *
 * The time depends on the seed, the number of the stream and the place in it alone. A host that
 * waits for a stream ends the holding back there: nothing can overtake any more. */
#include "plugins/sim/sim.h"

#include <time.h>

struct sim_hold {
    sim_hold *next;
    uint64_t ticket;
};

void sim_schedule_init(sim_schedule *schedule) {
    *schedule = (sim_schedule){0};
    pthread_mutex_init(&schedule->lock, NULL);
}

void sim_schedule_finish(sim_schedule *schedule) {
    pthread_mutex_destroy(&schedule->lock);
}

/* splitmix64's finish: every bit of the result depends on every bit of `x`. */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Half of the limit to all of it. */
static uint64_t draw_ns(const tn_stream_impl *stream, uint64_t place) {
    const sim_options *options = &stream->device->self->options;
    uint64_t half = options->delay_us * 500;
    return half + mix(mix(mix(options->seed) + stream->number) + place) % (half + 1);
}

/* Enters `hold`, unless an older command is held back already: then this one overtakes it. */
static bool enter(sim_schedule *schedule, sim_hold *hold) {
    bool overtakes = false;
    pthread_mutex_lock(&schedule->lock);
    for (const sim_hold *other = schedule->holds; other; other = other->next)
        overtakes |= other->ticket < hold->ticket;
    if (!overtakes) {
        hold->next = schedule->holds;
        schedule->holds = hold;
    }
    pthread_mutex_unlock(&schedule->lock);
    return !overtakes;
}

static void leave(sim_schedule *schedule, sim_hold *hold) {
    pthread_mutex_lock(&schedule->lock);
    sim_hold **at = &schedule->holds;
    while (*at != hold)
        at = &(*at)->next;
    *at = hold->next;
    pthread_mutex_unlock(&schedule->lock);
}

void sim_schedule_hold(tn_stream_impl *stream, const sim_command *command) {
    sim_schedule *schedule = &stream->device->self->schedule;
    sim_hold hold = {.ticket = command->ticket};
    if (!enter(schedule, &hold))
        return;
    struct timespec until;
    pthread_mutex_lock(&stream->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + draw_ns(stream, stream->done);
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    int error = 0;
    while (!error && !stream->n_waiters && !stream->stop)
        error = pthread_cond_timedwait(&stream->work, &stream->lock, &until);
    pthread_mutex_unlock(&stream->lock);
    leave(schedule, &hold);
}
