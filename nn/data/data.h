/* What datasets and loaders share: fields that are checked, and orders. */
#ifndef TNI_NN_DATA_DATA_H
#define TNI_NN_DATA_DATA_H

#include <tenon/data.h>

/* The bytes of each of n fields, checked, into bytes[n]; `call` and `what` ("the dataset") are for the
 * error. */
tn_status tnn_field_bytes(const char *call, const char *what, const tn_data_field *fields,
                          uint32_t n, uint64_t *bytes);

/* The numbers from 0 to n - 1 as epoch `epoch` has them. */
void tnn_shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch);

#endif
