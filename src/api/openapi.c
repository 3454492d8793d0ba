/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document, made from the table of routes and the schemas. */
#include "api/internal.h"

#include <stdio.h>
#include <string.h>

#include "net/http_server.h"

static void write_ref(struct json_writer *w, const char *kind, const char *name)
{
    char ref[128];

    snprintf(ref, sizeof(ref), "#/components/%s/%s", kind, name);
    json_begin_object(w);
    json_key_string(w, "$ref", ref);
    json_end_object(w);
}

static void write_content(struct json_writer *w, const char *type, const char *schema)
{
    json_key(w, "content");
    json_begin_object(w);
    json_key(w, type);
    json_begin_object(w);
    json_key(w, "schema");
    write_ref(w, "schemas", schema);
    json_end_object(w);
    json_end_object(w);
}

static void write_param(struct json_writer *w, const char *in, const struct api_param *p,
                        bool required)
{
    json_begin_object(w);
    json_key_string(w, "name", p->name);
    json_key_string(w, "in", in);
    json_key_bool(w, "required", required);
    if (p->description)
        json_key_string(w, "description", p->description);
    json_key(w, "schema");
    json_begin_object(w);
    json_key_string(w, "type", p->type);
    json_end_object(w);
    json_end_object(w);
}

static void write_path_params(struct json_writer *w, const char *path)
{
    const char *open = path;

    while ((open = strchr(open, '{')) != NULL) {
        size_t n = strcspn(open + 1, "}");
        char name[32];

        snprintf(name, sizeof(name), "%.*s", (int)n, open + 1);
        write_param(w, "path", &(struct api_param){name, "string", NULL}, true);
        open += n;
    }
}

static void write_params(struct json_writer *w, const struct api_route *r)
{
    json_key(w, "parameters");
    json_begin_array(w);
    write_path_params(w, r->path);
    for (const struct api_param *p = r->params; p && p->name; p++)
        write_param(w, "query", p, false);
    for (const struct api_param *p = r->headers; p && p->name; p++)
        write_param(w, "header", p, false);
    json_end_array(w);
}

/* SCHEMA NULL = no body. */
static void write_response(struct json_writer *w, int status, const char *type, const char *schema)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", status);
    json_key(w, text);
    json_begin_object(w);
    json_key_string(w, "description", http_status_phrase(status));
    if (schema)
        write_content(w, type ? type : "application/json", schema);
    json_end_object(w);
}

static void write_responses(struct json_writer *w, const struct api_route *r)
{
    json_key(w, "responses");
    json_begin_object(w);
    write_response(w, r->status, r->response_type, r->response);
    if (strcmp(r->method, "PUT") == 0 && r->response && strcmp(r->response, "TeamChanged") == 0)
        write_response(w, 201, NULL, r->response);
    if (r->dry_response)
        write_response(w, 200, NULL, r->dry_response);
    json_key(w, "default");
    write_ref(w, "responses", "Problem");
    json_end_object(w);
}

static void write_operation(struct json_writer *w, const struct api_route *r)
{
    char method[8] = "";

    for (size_t i = 0; r->method[i] && i < sizeof(method) - 1; i++)
        method[i] = (char)(r->method[i] | 0x20);
    json_key(w, method);
    json_begin_object(w);
    json_key_string(w, "operationId", r->operation);
    json_key_string(w, "summary", r->summary);
    if (r->auth == API_AUTH_ADMIN)
        json_key_string(w, "description", "Administrators only.");
    write_params(w, r);
    if (r->request) {
        json_key(w, "requestBody");
        json_begin_object(w);
        write_content(w, "application/json", r->request);
        json_end_object(w);
    }
    write_responses(w, r);
    if (r->auth == API_AUTH_NONE) {
        json_key(w, "security");
        json_begin_array(w);
        json_end_array(w);
    }
    json_end_object(w);
}

/* Routes of one path stand together in the table. */
static void write_paths(struct json_writer *w)
{
    size_t count;
    const struct api_route *routes = api_routes(&count);

    json_key(w, "paths");
    json_begin_object(w);
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || strcmp(routes[i].path, routes[i - 1].path) != 0;
        bool last = i + 1 == count || strcmp(routes[i].path, routes[i + 1].path) != 0;

        if (first) {
            json_key(w, routes[i].path);
            json_begin_object(w);
        }
        write_operation(w, &routes[i]);
        if (last)
            json_end_object(w);
    }
    json_end_object(w);
}

static void write_components(struct json_writer *w)
{
    static const char responses[] =
        "{\"Problem\":{\"description\":\"What went wrong, and what to do.\",\"content\":"
        "{\"application/problem+json\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}}";
    static const char security[] =
        "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
        "\"A token of POST /v1/tokens.\"}}";
    size_t count;
    const struct api_schema *schemas = api_schemas(&count);

    json_key(w, "components");
    json_begin_object(w);
    json_key(w, "schemas");
    json_begin_object(w);
    for (size_t i = 0; i < count; i++) {
        json_key(w, schemas[i].name);
        json_raw(w, schemas[i].json, strlen(schemas[i].json));
    }
    json_end_object(w);
    json_key(w, "responses");
    json_raw(w, responses, sizeof(responses) - 1);
    json_key(w, "securitySchemes");
    json_raw(w, security, sizeof(security) - 1);
    json_end_object(w);
}

void api_openapi_write(struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "openapi", "3.1.0");
    json_key(w, "info");
    json_begin_object(w);
    json_key_string(w, "title", "allot");
    json_key_string(w, "version", ALLOT_VERSION);
    json_key_string(w, "description",
                    "Self-service GPU cloud. Errors are problem documents (RFC 9457) with a "
                    "stable code, the field, and a remedy.");
    json_key(w, "license");
    json_begin_object(w);
    json_key_string(w, "name", "Apache-2.0");
    json_key_string(w, "identifier", "Apache-2.0");
    json_end_object(w);
    json_end_object(w);
    json_key(w, "security");
    json_begin_array(w);
    json_begin_object(w);
    json_key(w, "token");
    json_begin_array(w);
    json_end_array(w);
    json_end_object(w);
    json_end_array(w);
    write_paths(w);
    write_components(w);
    json_end_object(w);
}
