/* tenon/tenon.h: all of Tenon for programs. Each header can be included alone. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/autograd.h>
#include <tenon/base.h>
#include <tenon/custom.h>
#include <tenon/device.h>
#include <tenon/dispatch.h>
#include <tenon/fallback.h>
#include <tenon/introspect.h>
#include <tenon/io.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/plugins.h>
#include <tenon/profile.h>
#include <tenon/random.h>
#include <tenon/tensor.h>

#endif /* TENON_TENON_H */
