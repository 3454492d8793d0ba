/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <json-c/json.h>

#include "model/idle.h"
#include "model/team.h"

static void test_what_is_written_is_read(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{\"notebook\":{\"after\":\"1h30m\",\"action\":\"suspend\",\"signal\":\"any\"}}",
        "{\"job\":{\"after\":\"10s\",\"action\":\"notify\",\"signal\":\"gpu\"},"
        "\"service\":{\"after\":\"365d\",\"action\":\"stop\",\"signal\":\"any\"}}",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct model_idle_rule rules[MODEL_KIND_COUNT] = {0};
        struct strbuf b = STRBUF_INIT;

        assert_int_equal(model_idle_parse(texts[i], rules), 0);
        model_idle_text(rules, &b);
        assert_string_equal(strbuf_str(&b), texts[i]);
        strbuf_done(&b);
    }
}

static void test_anything_else_is_refused(void **state)
{
    static const char *const wrong[] = {
        "nonsense",
        "[]",
        "{\"desk\":{\"after\":\"1h\",\"action\":\"stop\"}}",
        "{\"job\":{\"after\":\"1h\"}}",
        "{\"job\":{\"action\":\"stop\"}}",
        "{\"job\":{\"after\":\"9s\",\"action\":\"stop\"}}",
        "{\"job\":{\"after\":\"366d\",\"action\":\"stop\"}}",
        "{\"job\":{\"after\":\"1h\",\"action\":\"burn\"}}",
        "{\"job\":{\"after\":\"1h\",\"action\":null}}",
        "{\"job\":{\"after\":\"1h\",\"action\":\"stop\",\"signal\":\"smoke\"}}",
        "{\"job\":{\"after\":\"1h\",\"action\":\"stop\",\"when\":\"now\"}}",
    };
    struct model_idle_rule rules[MODEL_KIND_COUNT] = {{.after_ms = 42}};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_true(model_idle_parse(wrong[i], rules) < 0);
    assert_int_equal(rules[0].after_ms, 42);
}

static void update(struct model_team *t, const char *text)
{
    struct json_object *json = json_tokener_parse(text);
    struct arena arena = {0};

    assert_non_null(json);
    assert_int_equal(model_team_decode(json, &arena, t, NULL), 0);
    t->name = "lab";
    json_object_put(json);
    arena_done(&arena);
}

static void test_an_update_keeps_what_it_does_not_name(void **state)
{
    struct model_team t;

    model_team_init(&t);
    update(&t, "{\"name\":\"lab\",\"idle\":{\"job\":{\"after\":\"1h\",\"action\":\"stop\"}}}");
    update(&t, "{\"name\":\"lab\",\"idle\":"
               "{\"notebook\":{\"after\":\"2h\",\"action\":\"notify\"}}}");
    update(&t, "{\"name\":\"lab\",\"weight\":3}");
    assert_int_equal(t.idle[MODEL_JOB].after_ms, 3600000);
    assert_int_equal(t.idle[MODEL_NOTEBOOK].after_ms, 7200000);
    update(&t, "{\"name\":\"lab\",\"idle\":{\"job\":null}}");
    assert_int_equal(t.idle[MODEL_JOB].after_ms, 0);
    assert_int_equal(t.idle[MODEL_NOTEBOOK].after_ms, 7200000);
    update(&t, "{\"name\":\"lab\",\"idle\":null}");
    assert_int_equal(t.idle[MODEL_NOTEBOOK].after_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_anything_else_is_refused),
        cmocka_unit_test(test_an_update_keeps_what_it_does_not_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
