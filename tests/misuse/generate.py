#!/usr/bin/env python3
"""Writes a C file that calls each function of the public headers with each argument wrong in turn.

usage: generate.py ROOT OPS_H OUTPUT HEADER...

ROOT is the source tree, HEADER its public headers for programs, OPS_H the generated one. A function is called
once as it is meant to be, and then once for each wrong value of each argument, with the others good. What is
good and wrong follows from the type (misuse.h); GOOD says where a good value follows from the function, and the
operators' are their samples of operators.toml. A header that is not given, a function that is not understood
and a type without values stop the build: what is added to a header is tested, or is said to be left out here.
"""

import pathlib
import re
import sys

# Functions that are not called, each with the reason.
LEFT_OUT = {
    "tn_fail": "takes a format for printf",
}

# Good arguments that do not follow from the type alone. A name alone is of every function.
GOOD = {
    "tn_device_parse.name": '"cpu:0"',
    "tn_device_count.type": '"cpu"',
    "tn_plugin_load.path": "sim_path()",
    "tn_plugin_set_option.device_type": '"misuse"',
    "tn_plugin_set_option.name": '"colour"',
    "tn_set_num_threads.n": "2",
    "tn_idx_read.path": "idx_path()",
    "tn_profile_write_trace.path": '"/dev/null"',
    "tn_op_define.schema": '"misuse::made(Tensor x) -> Tensor"',
    "tn_op_call.n_args": "3",
    "tn_op_redispatch.keys": "good_keyset()",
    "tn_kernel_register.device_type": '"cpu"',
    "tn_kernel_register.outputs": "NULL",
    "tn_handler_register.device_type": '"cpu"',
    "tn_graph_capture.device": "sim()",
    "tn_record_stream.stream": "tn_current_stream(cpu())",
    "tn_to_host.bytes": "6 * sizeof(float)",
    "tn_from_data.shape": "TN_SHAPE(2, 3)",
    "tn_from_blob.sizes": "TN_SHAPE(2, 3)",
    "tn_from_blob.strides": "tn_no_ints()",
    "tn_from_storage.sizes": "TN_SHAPE(2, 3)",
    "tn_from_storage.strides": "tn_no_ints()",
    "tn_item.t": "number()",
    "tn_item_i64.t": "number()",
    "tn_set_requires_grad.t": "plain()",
    "tn_set_grad.t": "leaf()",
    "tn_set_grad.grad": "plain()",
    "tn_retain_grad.t": "made_by_operator()",
    "tn_register_hook.t": "leaf()",
    "tn_register_node_hook.t": "made_by_operator()",
    "tn_backward.loss": "loss()",
    "tn_backward_full.roots": "list_of(loss())",
    "tn_backward_full.grads": "list_of(NULL)",
    "tn_backward_full.n": "1",
    "tn_gradients.roots": "list_of(tn_sum(shared_leaf()))",
    "tn_gradients.grads": "list_of(NULL)",
    "tn_gradients.n": "1",
    "tn_gradients.inputs": "list_of(shared_leaf())",
    "tn_gradients.n_inputs": "1",
    "tn_gradcheck.fn": "check_fn",
    "tn_gradcheck.inputs": "list_of(check_input())",
    "tn_gradcheck.n_inputs": "1",
    "tn_gradcheck.options": "NULL",
    "tn_gradgradcheck.fn": "check_fn",
    "tn_gradgradcheck.inputs": "list_of(check_input())",
    "tn_gradgradcheck.n_inputs": "1",
    "tn_gradgradcheck.options": "NULL",
    "tn_function_apply.n_inputs": "1",
    "tn_function_apply.n_outputs": "1",
    "tn_jvp.inputs": "list_of(plain())",
    "tn_jvp.tangents": "list_of(plain())",
    "tn_jvp.n_inputs": "1",
    "tn_jvp.n_outputs": "1",
    "tn_jacobian.inputs": "list_of(plain())",
    "tn_jacobian.n_inputs": "1",
    "tn_hessian.inputs": "list_of(plain())",
    "tn_hessian.n_inputs": "1",
    "tn_checkpoint.inputs": "list_of(plain())",
    "tn_checkpoint.n_inputs": "1",
    "tn_checkpoint.n_outputs": "1",
    "tn_function_save.n": "1",
    "tn_sgd_create.params": "list_of(leaf())",
    "tn_sgd_create.n": "1",
    "tn_adam_create.params": "list_of(leaf())",
    "tn_adam_create.n": "1",
    "tn_adamw_create.params": "list_of(leaf())",
    "tn_adamw_create.n": "1",
    "tn_rmsprop_create.params": "list_of(leaf())",
    "tn_rmsprop_create.n": "1",
    "tn_adagrad_create.params": "list_of(leaf())",
    "tn_adagrad_create.n": "1",
    "tn_lion_create.params": "list_of(leaf())",
    "tn_lion_create.n": "1",
    "tn_optimizer_set_lr.lr": "0.1",
    "tn_optimizer_state_name.k": "0",
    "tn_optimizer_state.name": '"exp_avg"',
    "tn_optimizer_set_state.name": '"exp_avg"',
    "tn_optimizer_set_state.state": "plain()",
    "tn_optimizer_set_steps.steps": "1",
    "tn_clip_grad_norm_.params": "list_of(leaf())",
    "tn_clip_grad_norm_.n": "1",
    "tn_clip_grad_norm_.norm_type": "2",
    "tn_clip_grad_value_.params": "list_of(leaf())",
    "tn_clip_grad_value_.n": "1",
    "tn_grad_scaler_scale.loss": "loss()",
    "tn_grad_scaler_set.factor": "2",
    "tn_grad_scaler_set.good_steps": "1",
    "tn_grad_scaler_update.scaler": "scaler_after_a_step()",
    "tn_set_autocast.dtype": "TN_BF16",
    "tn_lr_multi_step.milestones": "(int64_t[]){1, 2}",
    "tn_lr_multi_step.n": "2",
    "tn_lr_one_cycle.options": "ten_steps()",
    "tn_to_dlpack.flags": "0",
    "tn_dataset_init_tensors.tensors": "list_of(plain())",
    "tn_dataset_init_tensors.n": "1",
    "tn_dataset_init_idx.paths": "list_of_text(idx_path())",
    "tn_dataset_init_idx.n": "1",
    "tn_dataset_init_records.paths": "list_of_text(idx_path())",
    "tn_dataset_init_records.n": "1",
    "tn_data_loader_next.out": "batch_out()",
    "tn_data_loader_get_state.out": "loader_state_with(0, 0)",
    "tn_free.t": "plain()",
    "tn_escape.t": "plain()",
    "tn_pinned_free.p": "tn_pinned_alloc(cpu(), 64)",
    "tn_pinned_owner.p": "tn_pinned_alloc(cpu(), 64)",
    "tn_event_elapsed.start": "recorded_event()",
    "tn_event_elapsed.end": "recorded_event()",
}

# Arguments of which less is wrong than their type would allow.
ONLY_NULL = {"tn_op_redispatch.args"}  # the cells are what a handler got

# Functions that take a reference over: what they get is kept first.
TAKES = {"tn_drop": "tn_keep", "tn_give": "tn_keep", "tn_stream_drop": "tn_stream_keep",
         "tn_storage_drop": "tn_storage_keep"}

# What gives a result back.
GIVEN_BACK = {
    "tn_keep": "tn_drop", "tn_stream_keep": "tn_stream_drop", "tn_storage_keep": "tn_storage_drop",
    "tn_stream_create": "tn_stream_drop", "tn_event_create": "tn_event_destroy",
    "tn_sgd_create": "tn_optimizer_destroy", "tn_adam_create": "tn_optimizer_destroy", "tn_adamw_create": "tn_optimizer_destroy",
    "tn_rmsprop_create": "tn_optimizer_destroy", "tn_adagrad_create": "tn_optimizer_destroy", "tn_lion_create": "tn_optimizer_destroy",
    "tn_grad_scaler_create": "tn_grad_scaler_destroy",
    "tn_data_loader_create": "tn_data_loader_destroy",
    "tn_pinned_alloc": "tn_pinned_free", "tn_to_string": "tn_string_free",
    "tn_memory_snapshot": "tn_string_free", "tn_profile_table": "tn_string_free",
}

# Pointers that may be NULL without an error, which is their contract.
MAY_BE_NULL = {
    "tn_keep", "tn_give", "tn_escape", "tn_stream_keep", "tn_storage_keep", "tn_grad", "tn_stream_native",
    "tn_storage_address", "tn_optimizer_state", "tn_device_name", "tn_data",
}

# C types and the kind of value that they take; misuse.h has WRONG_<KIND>.
KINDS = {
    "tn_tensor *": "tensor", "const tn_tensor *": "tensor", "tn_tensor *const *": "tensors", "tn_tensor **": "outs",
    "int64_t": "i64", "uint64_t": "u64", "int32_t": "i32", "uint32_t": "u32", "double": "f64", "bool": "flag",
    "tn_dtype": "dtype", "tn_status": "i32", "tn_key": "i32", "tn_fallback_policy": "i32", "tn_dlpack_copy": "i32",
    "tn_scope": "scope", "tn_device": "device", "tn_ints": "ints", "tn_scalar": "scalar", "tn_keyset": "keyset",
    "tn_thread_keys": "thread_keys", "const char *": "text", "char *": "buffer", "const void *": "address",
    "void *": "address", "tn_stream *": "stream", "const tn_stream *": "stream", "tn_event *": "event",
    "tn_storage *": "storage", "const tn_storage *": "storage", "tn_graph *": "graph", "const tn_graph *": "graph",
    "tn_graph **": "out", "tn_optimizer *": "optimizer", "const tn_optimizer *": "optimizer",
    "tn_grad_scaler *": "scaler", "const tn_grad_scaler *": "scaler", "bool *": "out", "const int64_t *": "out",
    "tn_registration *": "registration", "tn_registration **": "out", "const tn_op *": "op", "const tn_cell *": "cells",
    "tn_cell *": "result_cells", "double *": "out", "int64_t *": "out", "uint64_t *": "out",
    "DLManagedTensorVersioned **": "out", "DLManagedTensor **": "out", "DLManagedTensorVersioned *": "dlpack",
    "DLManagedTensor *": "dlpack_legacy", "tn_function_context *": "context", "const tn_function_context *": "context",
    "const tn_function *": "function", "const tn_kernel *": "kernel", "const char *const *": "texts",
    "tn_dataset *": "dataset", "const tn_dataset *": "dataset", "const tn_data_records *": "records",
    "tn_data_random *": "random", "tn_data_loader *": "loader", "const tn_data_loader *": "loader",
    "const tn_data_loader_options *": "loader_options", "tn_data_batch *": "out", "tn_data_loader_state *": "out",
    "const tn_data_loader_state *": "loader_state",
}
# Kinds that C converts from what WRONG_<KIND> is made of.
CAST = {"out", "i32", "dlpack", "dlpack_legacy", "address"}

PROTOTYPE = re.compile(r"^TN_API\s+(.*?)\b(tn_\w+)\s*\((.*)\)\s*$", re.S)
CALLBACK = re.compile(r"^typedef\s+(.*?)\(\*(\w+)\)\s*\((.*)\)\s*$", re.S)


def fail(why):
    sys.exit(f"tests/misuse/generate.py: {why}")


def statements(path):
    """The declarations of a header, one after the other, without comments and macros."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
    text = re.sub(r"__attribute__\(\(.*?\)\)(?=\s*;)", "", text, flags=re.S)
    text = re.sub(r"\bTN_MUST_USE\b", "", text)
    depth, start, out = 0, 0, []
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and c in ";{}":
            out.append(" ".join(text[start:i].split()))
            start = i + 1
    return out


def split(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + ([last] if last and last != "void" else [])


def parameter(text):
    """(type, name, parameters of a callback or None)"""
    text = re.sub(r"\s*TN_DEFAULT\(.*\)$", "", text)
    if match := re.fullmatch(r"(.*?)\(\*(\w+)\)\s*\((.*)\)", text):
        return match[1].strip(), match[2], split(match[3])
    match = re.fullmatch(r"(.*?)(\w+|\.\.\.)", text)
    return match[1].strip(), match[2], None


class Header:
    """What a header declares."""

    def __init__(self, path):
        self.path = path
        self.functions, self.callbacks, self.structs = [], {}, set()
        for text in statements(path):
            if match := PROTOTYPE.match(text):
                self.functions.append((match[1].strip(), match[2], [parameter(p) for p in split(match[3])]))
            elif "TN_API" in text and not text.startswith("#"):
                fail(f"{path}: '{text[:80]}' is not understood")
            elif match := CALLBACK.match(text):
                self.callbacks[match[2]] = (match[1].strip(), split(match[3]))
        self.structs.update(re.findall(r"typedef struct (\w+) \{\s*uint64_t struct_size;", path.read_text()))


class Emitter:
    def __init__(self, headers, samples):
        self.callbacks = {k: v for h in headers for k, v in h.callbacks.items()}
        self.structs = set().union(*(h.structs for h in headers))
        self.samples = samples  # {function: [C expression for each parameter]} of the operators
        self.stubs, self.lines, self.rows = {}, [], []
        self.seen_structs = set()

    def stub(self, result, params):
        """A function to be called back; gives back an argument of its own type, or zero."""
        key = (result, tuple(params))
        if key not in self.stubs:
            name = f"callback_{len(self.stubs)}"
            parsed = [parameter(p) for p in params]
            same = next((n for t, n, _ in parsed if t == result), None)
            body = "" if result == "void" else f"    return {same or '0'};\n"
            self.lines.append(f"static {result} {name}({', '.join(params)}) {{\n{body}}}\n")
            self.stubs[key] = name
        return self.stubs[key]

    def kind_of(self, function, kind, name, callback, good=None):
        """(kind, good value) of a parameter."""
        if callback is not None:
            return "callback", good or self.stub(kind, callback)
        if kind in self.callbacks:
            return "callback", good or self.stub(*self.callbacks[kind])
        if name in ("user", "context") and kind == "void *":
            return None, "NULL"
        if kind in KINDS:
            cast = f"({kind})" if KINDS[kind] == "i32" else ""
            return KINDS[kind], good or f"{cast}good_{KINDS[kind]}()"
        struct = kind.removeprefix("const ").removesuffix("*").strip()
        if kind.endswith("*") and struct in self.structs:
            if struct not in self.seen_structs:
                self.seen_structs.add(struct)
                self.lines.append(f"static {struct} *good_{struct}(void) {{\n    static {struct} s;\n"
                                  f"    s = ({struct}){{.struct_size = sizeof s}};\n    return &s;\n}}\n")
            return "sized", good or f"good_{struct}()"
        fail(f"{function}: parameter '{name}' is a {kind}, for which there are no values; add them to KINDS and misuse.h")

    def function(self, result, name, params):
        given, args, kinds = [], [], []
        samples = self.samples.get(name)
        before = None
        for i, (kind, p, callback) in enumerate(params):
            override = GOOD.get(f"{name}.{p}", samples[i] if samples else None)
            what, good = self.kind_of(name, kind, p, callback, override)
            if f"{name}.{p}" in ONLY_NULL:
                what = "out"
            if what == "u64" and before and before.endswith("*") and re.fullmatch(r"n|n_\w+|bytes|size", p):
                what = "length"  # of what the argument before points to: more than is there is a lie
            before = kind if callback is None else None
            text = f"{kind} " if callback is None else f"{kind} (*"
            local = f"{text}a_{p}" + ("" if callback is None else f")({', '.join(callback)})")
            wrong = f"wrong_{what}(c->value)" if what else None
            if what == "length":
                wrong = "0"
            if what in CAST or what in ("sized", "callback"):
                wrong = f"(void *)wrong_{what}(c->value)" if what != "i32" else f"({kind})wrong_i32(c->value)"
            if what == "callback":
                wrong = "NULL"
            if what == "sized":
                wrong = f"wrong_sized(good_{kind.removeprefix('const ').removesuffix('*').strip()}(), c->value)"
            value = f"c->argument == {i} ? {wrong} : {good}" if what else good
            given.append(f"    {local} = {value};")
            args.append(f"{TAKES[name]}(a_{p})" if name in TAKES else f"a_{p}")
            kinds.append(f'{{"{p}", {f"names_{what}, N_{what}" if what else "NULL, 0"}}}')
        call = f"({name})({', '.join(args)})"
        lines = [f"static void call_{name}(const place *c) {{", *given, "    tn_error_clear();"]
        if result == "void":
            lines.append(f"    {call};\n    came_back(c);")
        elif result == "tn_status":
            lines.append(f"    gave_status(c, {call});")
        elif result.endswith("*"):
            lines.append(f"    {result} result = {call};")
            lines.append(f"    gave_pointer(c, result, {'true' if name in MAY_BE_NULL else 'false'});")
            if name in GIVEN_BACK:
                lines.append(f"    {GIVEN_BACK[name]}(result);")
            elif result == "tn_registration *":
                lines.append("    tn_registration_drop(result);")
        else:
            lines.append(f"    (void){call};\n    came_back(c);")
        lines.append("}\n")
        self.lines.append("\n".join(lines))
        inside = any(KINDS.get(t) == "context" for t, _, _ in params)
        self.lines.append(f"static const parameter parameters_{name}[] = {{{', '.join(kinds) or '{0}'}}};\n")
        self.rows.append(f'    {{"{name}", call_{name}, parameters_{name}, {len(params)}, {"true" if inside else "false"}, '
                         f'{"true" if samples else "false"}}},\n')


# ---- the operators' samples ----------------------------------------------------------------------


def operator_samples(root):
    """{C function: a C expression for each parameter}; those of in-place and out forms, too."""
    sys.path[:0] = [str(root / "core/ops/generate"), str(root / "plugin-sdk")]
    import ast

    import emit
    import emit_api
    import emit_tests
    import generate_kernels
    import table as tables

    kernels = generate_kernels.load(str(root / "plugin-sdk/kernels.toml"))
    table = tables.load(str(root / "core/ops/operators.toml"), kernels)

    def tensor(node):
        values = [ast.literal_eval(a) for a in node.args]
        limit = values.pop(0) if node.func.id == "idx" else 0
        shape = f"TN_SHAPE({', '.join(map(str, values))})" if values else "TN_SCALAR_SHAPE"
        return f"sample({emit_tests.FILLS[node.func.id]}, {limit}, {shape})"

    def values_of(arg, node):
        if isinstance(node, ast.Call):
            return [tensor(node)]
        if isinstance(node, ast.List) and arg.kind == "tensors":
            elements = [tensor(e) if isinstance(e, ast.Call) else "TN_NONE" for e in node.elts]
            return [f"(tn_tensor *[]){{{', '.join(elements)}}}", str(len(elements))]
        value = ast.literal_eval(node)
        if value is None:
            return [emit.default_c(arg)]
        if arg.kind == "ints":
            value = [value] if isinstance(value, int) else list(value)
            return [f"TN_SHAPE({', '.join(map(str, value))})" if value else "TN_SCALAR_SHAPE"]
        if arg.kind == "dtype":
            return [f"TN_{value.upper()}"]
        if arg.kind == "str":
            return [f'"{value}"']
        if arg.kind == "scalar":
            return [f"tn_float({value!r})" if isinstance(value, float) else
                    f"tn_bool({str(value).lower()})" if isinstance(value, bool) else f"tn_int({value})"]
        return [str(value).lower() if isinstance(value, bool) else repr(value)]

    out = {}
    for op in table.ops:
        texts = op.entry.get("calls") or emit_tests.samples_of(table, op.entry)
        params = [None] * len(emit.parameters(op))
        if texts:
            nodes = emit_tests.parsed(op, texts[0])
            values = []
            for i, arg in enumerate(op.functional.args):
                if i < len(nodes):
                    values += values_of(arg, nodes[i])
                else:
                    values += [emit.default_c(arg)] if arg.kind != "tensors" else ["NULL", "0"]
            for i, value in enumerate(values):
                params[i] = value
            if op.form == "out":
                params[len(values)] = f"tn_clone((tn_{op.functional_c_name})({', '.join(values)}))"
            if op.returns_list:
                params[-1] = f"(uint64_t)(tn_{op.c_name}_count)({', '.join(values)})"
        out[f"tn_{op.c_name}"] = params
        if op.returns_list:
            out[f"tn_{op.c_name}_count"] = params[:-2]
        assert len(emit_api.public_functions(op)[0][2]) == len(params)
    return out


# ---- all of it -----------------------------------------------------------------------------------


def main(root, ops_h, output, given):
    root = pathlib.Path(root)
    given = [pathlib.Path(path) for path in given]
    for folder in ("base", "dispatcher", "loader", "core"):
        for path in sorted((root / folder / "include/tenon").glob("*.h")):
            if not any(path.samefile(g) for g in given):
                fail(f"{path} is not among the headers that tests/misuse/meson.build gives")
    headers = [Header(path) for path in [*given, pathlib.Path(ops_h)]]
    types = Header(root / "plugin-sdk/include/tenon/plugin.h")  # has no functions for programs
    emitter = Emitter([types, *headers], operator_samples(root))
    names = {name for h in headers for _, name, _ in h.functions}
    for table, what in ((LEFT_OUT, "left out"), (TAKES, "said to take"), (GIVEN_BACK, "said to be given back")):
        for name in set(table) - names:
            fail(f"{name} is {what}, but there is no such function")
    for header in headers:
        for result, name, params in header.functions:
            if name not in LEFT_OUT:
                emitter.function(result, name, params)
    body = "\n".join(emitter.lines)
    pathlib.Path(output).write_text(
        "/* Generated by tests/misuse/generate.py. Do not edit. */\n#include \"tests/misuse/misuse.h\"\n\n"
        + body + "\nconst called functions[] = {\n" + "".join(emitter.rows)
        + "};\nconst unsigned n_functions = sizeof functions / sizeof functions[0];\n")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
