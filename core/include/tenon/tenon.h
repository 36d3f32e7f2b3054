/* tenon/tenon.h: all of Tenon for programs. Each header can be included alone.
 *
 * Forks. A child of fork can use Tenon whatever the other threads of its parent were doing, also
 * when fork is called inside a log function, a hook or another callback, which the child then
 * returns from. In the child:
 *   - Devices of plugins that say TN_PLUGIN_FORK_SAFE work on ("cpu" does, on one thread). Those of
 *     others, if the parent had started the plugin, fail with TN_ERR_STATE.
 *   - What the calling thread had (scopes, error, current streams, a backward pass) goes on. Of
 *     the other threads, cached memory is used again; their scopes and tensors are there for ever.
 *     A tensor that one of them was writing to has any value.
 *   - tn_shutdown counts only what the child made, if the parent had other threads: tensors from
 *     before, but for those in the calling thread's scopes, cannot be told from theirs.
 *   - fork waits until the other threads are at rest, for 5 seconds at most. What one does not leave
 *     by then, since a callback of its own waits for the thread that forks, say, fails in the child
 *     with TN_ERR_STATE: opening plugins, or a device.
 * vfork, posix_spawn and fork followed by exec need none of this.
 */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/autocast.h>
#include <tenon/autograd.h>
#include <tenon/base.h>
#include <tenon/custom.h>
#include <tenon/device.h>
#include <tenon/dispatch.h>
#include <tenon/fallback.h>
#include <tenon/graph.h>
#include <tenon/introspect.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/plugins.h>
#include <tenon/profile.h>
#include <tenon/random.h>
#include <tenon/storage.h>
#include <tenon/tensor.h>

#endif /* TENON_TENON_H */
