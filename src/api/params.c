/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/qty.h"

const char *call_param(struct api_call *call, const char *name)
{
    for (int i = 0; i < call->http->param_count; i++)
        if (strcmp(call->http->params[i].name, name) == 0)
            return call->http->params[i].value;
    return NULL;
}

int call_param_int(struct api_call *call, const char *name, int64_t min, int64_t max,
                   int64_t *ret_value, struct err *err)
{
    const char *text = call_param(call, name);
    int64_t value;

    if (text == NULL)
        return 0;
    if (qty_parse_int(text, &value, NULL) < 0 || value < min || value > max)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, name, NULL,
                       "%s '%.60s' is not a number from %lld to %lld", name, text, (long long)min,
                       (long long)max);
    *ret_value = value;
    return 0;
}

int call_param_bool(struct api_call *call, const char *name, bool *ret_value, struct err *err)
{
    const char *text = call_param(call, name);

    if (text == NULL)
        return 0;
    if (strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || *text == '\0')
        *ret_value = true;
    else if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        *ret_value = false;
    else
        return err_set(err, -EINVAL, ERR_INVALID, name, "use true or false",
                       "%s '%.60s' is neither true nor false", name, text);
    return 0;
}

int call_param_time(struct api_call *call, const char *name, int64_t *ret_ms, struct err *err)
{
    const char *text = call_param(call, name);

    if (text == NULL || clock_parse_utc(text, ret_ms) == 0)
        return 0;
    return err_set(err, -EINVAL, ERR_INVALID, name,
                   "write 2026-11-30, 2026-11-30T21:29:59Z or milliseconds since 1970",
                   "%s '%.60s' is not a time", name, text);
}
