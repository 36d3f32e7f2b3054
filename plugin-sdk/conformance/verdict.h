/* The verdict on one case.
 *
 * A worker fills one and writes it as one line of JSON; the runner reads it back, adds what only it
 * can know (a crash, a timeout, a rerun that passed, what the lists say), and appends it to the
 * log.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_VERDICT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/requirements.h>

/* X(NAME, name, when). The first five are a worker's to say. */
#define TC_STATUS_MAP(X) \
    X(PASS, "pass", "everything checked held") \
    X(FAIL, "fail", "something did not; the message says what") \
    X(INCONCLUSIVE, "inconclusive", \
      "nothing was wrong, and nothing wrong would have been noticed") \
    X(UNSUPPORTED, "unsupported", "the plugin does not claim what the case needs") \
    X(ERROR, "error", "the suite could not run the case: a bad line, no memory, its own bug") \
    X(CRASH, "crash", "the worker died in the case") \
    X(TIMEOUT, "timeout", "the worker did not answer in time") \
    X(FLAKY, "flaky", "failed, and passed when run again") \
    X(XFAIL, "xfail", "failed, as a list said it would") \
    X(XPASS, "xpass", "passed, though a list said it would fail") \
    X(WAIVED, "waived", "failed, and a list says why that is accepted")

typedef enum tc_status {
#define TC_STATUS_ENUM(NAME, name, when) TC_##NAME,
    TC_STATUS_MAP(TC_STATUS_ENUM)
#undef TC_STATUS_ENUM
        TC_N_STATUSES
} tc_status;

/* How the message of a case begins that met no open device. */
#define TC_CANNOT_OPEN "the device cannot be opened"

enum { TC_VERDICT_MESSAGE = 1024, TC_VERDICT_LINE = 8192 };

/* How the message of an `unsupported` begins where all that the device lacks for the case is known:
 * kernels with the dtype, pairs of `copy`, dtypes that cannot be stored; then a semicolon and why.
 *
 *     lacks amax bool, copy f32 i64, dtype f64; UNSUPPORTED: ...
 */
#define TC_LACKS "lacks "

/* What a device can do at most; measured, as all figures are (perf/). */
#define TC_CEILING_MAP(X) \
    X(NONE, "none") \
    X(LAUNCH, "launch")     /* the smallest call takes as long */ \
    X(COPY, "copy")         /* as many bytes a second as copying moves */ \
    X(MULTIPLY, "multiply") /* as many operations a second as the best matrix product makes */

typedef enum tc_ceiling {
#define TC_CEILING_ENUM(NAME, name) TC_CEILING_##NAME,
    TC_CEILING_MAP(TC_CEILING_ENUM)
#undef TC_CEILING_ENUM
        TC_N_CEILINGS
} tc_ceiling;

/* What was measured of a timed call. */
typedef struct tc_figures {
    double ns;        /* per call, as the host sees it: the median of the runs; 0: not timed */
    double spread;    /* of the runs: slowest less fastest, as a share of the median */
    double device_ns; /* per call, between two events; 0 where there are none with a clock */
    double bytes;     /* that the call must move: inputs and outputs, each once */
    double flop;      /* a product and its sum are two; 0 where nothing is multiplied and added */
    tc_ceiling bound; /* the ceiling that is nearest, */
    double share;     /* and the least time it allows as a share of `ns` */
} tc_figures;

/* X(member) of those of the numbers that a record names as they are named here, but `ns`. */
#define TC_FIGURES(X) X(spread) X(device_ns) X(bytes) X(flop) X(share)

typedef struct tc_verdict {
    tc_status status;
    tn_requirement requirement; /* TNP-n that was broken */
    bool measured;              /* the next three are set */
    double share;               /* worst error as a share of its bound: at most 1 passes */
    double bias;                /* mean signed error as a share of the bound */
    int64_t worst;              /* row-major index of the worst element of its output */
    double milliseconds;
    tc_figures figures;
    char message[TC_VERDICT_MESSAGE]; /* "" for a pass; else what, where, expected and got */
} tc_verdict;

/* "ALLOC_HANDLE" for 37; "" for a number that this suite does not know. */
const char *tc_requirement_name(uint32_t requirement);
const char *tc_ceiling_name(tc_ceiling ceiling);
const char *tc_status_name(tc_status status);
/* False where `name` is none. */
bool tc_status_find(const char *name, tc_status *out);

/* Sets status, requirement and message. An earlier failure stays: the first is what is reported.
 * False, which is what most who gave up return. */
bool tc_verdict_set(tc_verdict *v, tc_status status, tn_requirement requirement, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* The same where the case or the suite is at fault, and nothing is known of the device. */
#define TC_CASE_ERROR(v, ...) tc_verdict_set(v, TC_ERROR, TNP_NONE, __VA_ARGS__)

/* One JSON object, without newline; `line` is the case's canonical line. Returns its length. */
size_t tc_verdict_write(const tc_verdict *v, const char *line, char out[TC_VERDICT_LINE]);

#endif
