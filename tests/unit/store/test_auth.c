/* SPDX-License-Identifier: Apache-2.0 */
/* Users, tokens, kept replies, meta. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "base/strbuf.h"
#include "support.h"

#define OPS (&store_sqlite_ops)

static int find(struct fixture *f, uint8_t byte, int64_t now_ms, struct model_token *token,
                struct model_user *user, struct err *err)
{
    uint8_t hash[MODEL_TOKEN_HASH_BYTES];
    memset(hash, byte, sizeof(hash));
    return OPS->find_token(f->store, hash, now_ms, &f->arena, token, user, err);
}

static void a_token_finds_its_user(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    const char *teams[] = {"nlp", "größe & co"};
    struct model_user ada = {.name = "ada", .admin = true, .teams = teams, .team_count = 2};
    txn_add(t, &(struct store_op){.kind = STORE_PUT_USER, .user = &ada});
    put_token(t, 1, "ada", 0xab, 0);
    assert_int_equal(txn_commit(f, t), 0);
    struct model_token token;
    struct model_user user;
    assert_int_equal(find(f, 0xab, 1000, &token, &user, NULL), 0);
    assert_int_equal(token.id, 1);
    assert_int_equal(token.created_ms, 5);
    assert_string_equal(token.user, "ada");
    assert_null(token.label);
    assert_int_equal(token.hash[31], 0xab);
    assert_string_equal(user.name, "ada");
    assert_true(user.admin);
    assert_int_equal(user.team_count, 2);
    assert_string_equal(user.teams[1], "größe & co");
}

static void a_token_expires_at_its_millisecond(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct model_token token;
    struct model_user user;
    struct err err = ERR_INIT;
    put_user(t, "ada", "nlp");
    put_token(t, 1, "ada", 1, 1000);
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(find(f, 1, 999, &token, &user, NULL), 0);
    assert_int_equal(find(f, 1, 1000, &token, &user, &err), -ENOENT);
    assert_non_null(strstr(err.text, "expired"));
    assert_int_equal(find(f, 2, 0, &token, &user, &err), -ENOENT);
    assert_non_null(strstr(err.text, "unknown"));
}

static void deleting_a_user_deletes_its_tokens(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct model_token token;
    struct model_user user;
    put_user(t, "ada", "nlp");
    put_user(t, "bob", NULL);
    put_token(t, 1, "ada", 1, 0);
    put_token(t, 2, "bob", 2, 0);
    txn_add(t, &(struct store_op){.kind = STORE_DELETE_USER, .name = "ada"});
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(find(f, 1, 0, &token, &user, NULL), -ENOENT);
    assert_int_equal(find(f, 2, 0, &token, &user, NULL), 0);
    assert_int_equal(user.team_count, 0);
}

static void changing_a_user_keeps_its_tokens(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct model_token token;
    struct model_user user;
    put_user(t, "ada", "nlp");
    put_token(t, 1, "ada", 1, 0);
    put_user(t, "ada", "vision");
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(find(f, 1, 0, &token, &user, NULL), 0);
    assert_string_equal(user.teams[0], "vision");
}

static void a_second_token_with_one_hash_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_user(t, "ada", "nlp");
    put_token(t, 1, "ada", 1, 0);
    assert_int_equal(txn_commit(f, t), 0);
    t = txn_new(f);
    put_token(t, 2, "ada", 1, 0);
    assert_int_equal(txn_commit(f, t), -EEXIST);
}

static void the_id_of_a_deleted_token_stays_used(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    uint64_t workload, event, other;
    put_user(t, "ada", "nlp");
    put_token(t, 40, "ada", 1, 0);
    txn_add(t, &(struct store_op){.kind = STORE_DELETE_TOKEN, .id = 40});
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(OPS->last_ids(f->store, &workload, &event, &other, NULL), 0);
    assert_int_equal(other, 40);
}

static int count_token(void *user, const struct model_token *token)
{
    *(uint64_t *)user = *(uint64_t *)user * 10 + token->id;
    return 0;
}

static int add_user(void *user, const struct model_user *row)
{
    strbuf_adds(user, row->name);
    return 0;
}

static void users_and_tokens_are_listed(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    uint64_t ids = 0;
    _cleanup_strbuf_ struct strbuf names = STRBUF_INIT;
    put_user(t, "bob", "nlp");
    put_user(t, "ada", "nlp");
    put_token(t, 3, "ada", 1, 0);
    put_token(t, 1, "bob", 2, 0);
    put_token(t, 2, "ada", 3, 0);
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(OPS->each_token(f->store, NULL, count_token, &ids, NULL), 0);
    assert_int_equal(ids, 123);
    ids = 0;
    assert_int_equal(OPS->each_token(f->store, "ada", count_token, &ids, NULL), 0);
    assert_int_equal(ids, 23);
    assert_int_equal(OPS->each_user(f->store, add_user, &names, NULL), 0);
    assert_string_equal(strbuf_str(&names), "adabob");
}

static void a_reply_is_kept_until_it_expires(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct store_reply reply;
    put_reply(t, "ada\nk1", 500);
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(OPS->get_reply(f->store, "ada\nk1", 499, &f->arena, &reply, NULL), 0);
    assert_string_equal(reply.key, "ada\nk1");
    assert_string_equal(reply.digest, "d1");
    assert_int_equal(reply.status, 201);
    assert_string_equal(reply.body, "{\"id\":1}");
    assert_int_equal(reply.expires_ms, 500);
    assert_int_equal(OPS->get_reply(f->store, "ada\nk1", 500, &f->arena, &reply, NULL), -ENOENT);
    assert_int_equal(OPS->get_reply(f->store, "bob\nk1", 0, &f->arena, &reply, NULL), -ENOENT);
}

static void meta_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    const char *value;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_META, .meta = {"k", "1"}});
    txn_add(t, &(struct store_op){.kind = STORE_PUT_META, .meta = {"k", "2"}});
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(OPS->get_meta(f->store, "k", &f->arena, &value, NULL), 0);
    assert_string_equal(value, "2");
    assert_int_equal(OPS->get_meta(f->store, "none", &f->arena, &value, NULL), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_finds_its_user),
        TEST(a_token_expires_at_its_millisecond),
        TEST(deleting_a_user_deletes_its_tokens),
        TEST(changing_a_user_keeps_its_tokens),
        TEST(a_second_token_with_one_hash_is_refused),
        TEST(the_id_of_a_deleted_token_stays_used),
        TEST(users_and_tokens_are_listed),
        TEST(a_reply_is_kept_until_it_expires),
        TEST(meta_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
