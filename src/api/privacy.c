/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is named to whom. A person sees the workloads of the teams that are his, and of those below
 * them. Where other work matters to his (it holds what his waits for, his made way for it), he is
 * told its team and the numbers, and neither name nor id. This is the only place that decides
 * that: explanations and events pass through here before they are encoded. What the store keeps
 * in plain text (messages) names no work of another team to begin with.
 */
#include "api/internal.h"

#include <json-c/json.h>
#include <string.h>

#include "base/strbuf.h"

int call_sight(struct api_call *call, struct api_sight *ret_sight, struct err *err)
{
    return call_visible_teams(call, &ret_sight->teams, &ret_sight->count, err);
}

static bool sees(const void *ctx, const char *team)
{
    const struct api_sight *sight = ctx;

    return api_teams_have(sight->teams, sight->count, team);
}

void api_explanation_for(const struct api_sight *sight, struct model_explanation *x,
                         struct arena *arena)
{
    model_explanation_redact(x, sees, sight);
    x->sentence = model_explanation_sentence(x, arena);
    x->remedy = model_explanation_remedy(x, arena);
}

/* ---- events --------------------------------------------------------------------------------- */

static const char *member_text(struct json_object *o, const char *key)
{
    struct json_object *v = json_object_object_get(o, key);

    return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}

static int64_t member_number(struct json_object *o, const char *key)
{
    return json_object_get_int64(json_object_object_get(o, key));
}

static struct model_eviction eviction_of(struct json_object *o)
{
    return (struct model_eviction){
        .cause = member_text(o, "cause"),
        .for_id = (uint64_t)member_number(o, "on_behalf_of"),
        .for_name = member_text(o, "for_name"),
        .for_team = member_text(o, "for_team"),
        .gpu_milli = member_number(o, "asked_milli"),
        .gpu_type = member_text(o, "asked_type"),
    };
}

void api_event_for(const struct api_sight *sight, struct model_event *e, struct arena *arena)
{
    struct json_object *o;
    struct model_eviction eviction;

    if (e->data == NULL || strcmp(e->type, MODEL_EVENT_EVICTED) != 0)
        return;
    o = json_tokener_parse(e->data);
    eviction = eviction_of(o);
    if (eviction.for_id == 0) {
        json_object_put(o);
        return;
    }
    if (eviction.for_team ? !sees(sight, eviction.for_team) : sight->teams != NULL) {
        eviction.for_id = 0;
        eviction.for_name = NULL;
        json_object_object_del(o, "on_behalf_of");
        json_object_object_del(o, "for_name");
        e->data = arena_strdup(arena, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
    }
    if (eviction.for_team) /* else it is of an older release, and stays as it was written down */
        e->message = model_eviction_describe(&eviction, arena);
    json_object_put(o);
}
