/* A stream is a list of commands and a thread that runs them in order.
 *
 * Callers append under the stream's lock and go on; the list has no bound, so queueing never waits.
 * The first error of queued work is kept and handed over once, by query or synchronize; later
 * commands run all the same. */
#include "plugins/sim/sim.h"

#include <tenon/ext/capture.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

tn_status sim_command_run(tn_device_impl *device, sim_command *command, char message[SIM_MESSAGE]) {
    const sim_block *freed = sim_uses_freed(&command->uses);
    if (!sim_count_command(device) && !command->is_mark) {
        snprintf(message, SIM_MESSAGE, "sim:%u is lost, with work in its queues", device->index);
        return TN_ERR_DEVICE_LOST;
    }
    if (freed) {
        snprintf(message, SIM_MESSAGE,
                 "queued work uses handle %#llx of sim:%u, which was freed before the work ran",
                 (unsigned long long)freed->handle, device->index);
        return TN_ERR_INVALID_ARGUMENT;
    }
    return command->run(command, message);
}

void sim_command_free(const tn_instance *self, sim_command *command) {
    sim_uses_drop(&command->uses);
    self->host->dealloc(self->host, command);
}

/* Runs one command, outside the lock, and notes that it is done. */
static void run_command(tn_stream_impl *stream, sim_command *command) {
    char message[SIM_MESSAGE];
    tn_device_impl *device = stream->device;
    if (device->self->options.delay_us)
        sim_schedule_hold(stream, command);
    tn_status status = sim_command_run(device, command, message);
    sim_command_free(device->self, command);

    pthread_mutex_lock(&stream->lock);
    if (status != TN_OK && stream->error == TN_OK) {
        stream->error = status;
        memcpy(stream->message, message, sizeof message);
    }
    stream->done++;
    if (stream->n_waiters)
        pthread_cond_broadcast(&stream->progress);
    pthread_mutex_unlock(&stream->lock);
}

/* Takes all that is queued, or NULL when the stream is to stop. Sleeps while there is nothing. */
static sim_command *take_commands(tn_stream_impl *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->idle = true;
    while (!stream->head && !stream->stop)
        pthread_cond_wait(&stream->work, &stream->lock);
    stream->idle = false;
    sim_command *commands = stream->head;
    stream->head = NULL;
    stream->tail = &stream->head;
    pthread_mutex_unlock(&stream->lock);
    return commands;
}

static void *run_stream(void *argument) {
    tn_stream_impl *stream = argument;
    sim_command *command, *next;
    while ((command = take_commands(stream)))
        for (; command; command = next) {
            next = command->next;
            run_command(stream, command);
        }
    return NULL;
}

/* Starts a thread that leaves the program's signals to the program; faults stay its own. */
static int start_thread(pthread_t *out_thread, void *(*run)(void *), void *argument) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(out_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* All streams are alike: `priority` is a hint. */
static tn_status create(tn_device_impl *device, int32_t priority, tn_stream_impl **out_stream) {
    tn_instance *self = device->self;
    *out_stream = NULL;
    PLUGIN_TRY(sim_enter(device, SIM_FAULT_stream));
    tn_stream_impl *stream = sim_host_alloc(self, sizeof *stream, "a stream");
    if (!stream)
        return TN_ERR_OUT_OF_MEMORY;
    *stream = (tn_stream_impl){.device = device,
                               .number = atomic_fetch_add(&self->schedule.streams, 1),
                               .tail = &stream->head};
    pthread_mutex_init(&stream->lock, NULL);
    pthread_condattr_t monotonic; /* for the deadlines of schedule.c */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&stream->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&stream->progress, NULL);
    int error = start_thread(&stream->thread, run_stream, stream);
    if (error) {
        pthread_cond_destroy(&stream->progress);
        pthread_cond_destroy(&stream->work);
        pthread_mutex_destroy(&stream->lock);
        self->host->dealloc(self->host, stream);
        return sim_fail(self, TN_ERR_OUT_OF_MEMORY,
                        "sim:%u: no thread for a stream (error %d); the process or system limit of "
                        "threads is reached",
                        device->index, error);
    }
    device->n_streams++;
    *out_stream = stream;
    return TN_OK;
}

static void destroy(tn_stream_impl *stream) {
    if (!stream)
        return;
    if (stream->recording) {
        stream->device->self->host->log_message(stream->device->self->host, TN_LOG_ERROR,
                                                "a stream is destroyed while it captures");
        sim_ext_capture.abandon(stream);
    }
    pthread_mutex_lock(&stream->lock);
    stream->stop = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);

    pthread_cond_destroy(&stream->progress);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    stream->device->n_streams--;
    stream->device->self->host->dealloc(stream->device->self->host, stream);
}

tn_status sim_stream_check(tn_device_impl *device, const tn_stream_impl *stream, const char *what) {
    if (!stream)
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "%s: no stream; sim devices have streams and every call names one", what);
    if (stream->device != device)
        return sim_fail(device->self, TN_ERR_INVALID_ARGUMENT,
                        "%s: a stream of sim:%u used on sim:%u", what, stream->device->index,
                        device->index);
    return TN_OK;
}

uint64_t sim_stream_push(tn_stream_impl *stream, sim_command *command) {
    command->next = NULL;
    pthread_mutex_lock(&stream->lock);
    if (stream->recording && !command->is_mark && !command->never_recorded) {
        sim_recording_add(stream->recording, command);
        pthread_mutex_unlock(&stream->lock);
        return 0;
    }
    if (stream->device->self->options.delay_us)
        command->ticket = atomic_fetch_add(&stream->device->self->schedule.tickets, 1);
    if (stream->idle && !stream->head)
        pthread_cond_signal(&stream->work);
    *stream->tail = command;
    stream->tail = &command->next;
    uint64_t place = ++stream->queued;
    pthread_mutex_unlock(&stream->lock);
    return place;
}

/* Called with the lock held. */
static void wait_for(tn_stream_impl *stream, uint64_t place) {
    stream->n_waiters++;
    if (stream->device->self->options.delay_us)
        pthread_cond_signal(&stream->work); /* it may be held back */
    while (stream->done < place)
        pthread_cond_wait(&stream->progress, &stream->lock);
    stream->n_waiters--;
}

void sim_stream_wait(tn_stream_impl *stream, uint64_t place) {
    pthread_mutex_lock(&stream->lock);
    wait_for(stream, place);
    pthread_mutex_unlock(&stream->lock);
}

/* Hands over the error, if there is one; releases the lock. */
static tn_status report_and_unlock(tn_stream_impl *stream) {
    char message[SIM_MESSAGE];
    tn_status error = stream->error;
    stream->error = TN_OK;
    if (error != TN_OK)
        memcpy(message, stream->message, sizeof message);
    pthread_mutex_unlock(&stream->lock);
    return error == TN_OK
               ? TN_OK
               : stream->device->self->host->fail(stream->device->self->host, error, message);
}

static tn_status query(tn_stream_impl *stream) {
    PLUGIN_TRY(sim_check_lost(stream->device));
    PLUGIN_TRY(sim_check_capture(stream, "query of a stream"));
    pthread_mutex_lock(&stream->lock);
    tn_status status = sim_check_lost(stream->device);
    if (status == TN_OK && stream->done < stream->queued)
        status = TN_NOT_READY;
    if (status != TN_OK) {
        pthread_mutex_unlock(&stream->lock);
        return status;
    }
    return report_and_unlock(stream);
}

static tn_status synchronize(tn_stream_impl *stream) {
    tn_status status = sim_enter(stream->device, SIM_FAULT_sync);
    if (status == TN_OK)
        status = sim_check_capture(stream, "synchronize of a stream");
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&stream->lock);
    wait_for(stream, stream->queued);
    if ((status = sim_check_lost(stream->device)) != TN_OK) {
        pthread_mutex_unlock(&stream->lock);
        return status;
    }
    return report_and_unlock(stream);
}

const tn_stream_ops sim_stream_ops = {
    .struct_size = sizeof sim_stream_ops,
    .create = create,
    .destroy = destroy,
    .query = query,
    .synchronize = synchronize,
};
