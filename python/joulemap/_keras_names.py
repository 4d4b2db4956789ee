# SPDX-License-Identifier: Apache-2.0
"""Maps the names in a graph that Keras traces for TensorFlow: scopes to layers, and operations to layer updates or
metrics. TensorFlow renumbers scopes ("dense_1" may be the second scope of `dense`), so the mapping is stored when a
scope is opened. It changes nothing in the graph, and does nothing outside of tracing.
"""

from __future__ import annotations

import functools
from typing import List, Optional

from . import _capture_interface as capture
from ._graph_names import GraphNames
from ._tensorflow_calls import current_graph_names


class GraphNameRecorder:
    """Collects names while TensorFlow traces a function."""

    def __init__(self, keras, tf) -> None:
        self._tf = tf
        self._layer_class = keras.layers.Layer
        self._optimizer_class = keras.optimizers.Optimizer

    def install(self) -> None:
        from keras.src.backend.common import global_state
        from keras.src.backend.tensorflow import core
        from keras.src.losses.loss import Loss
        from keras.src.metrics.reduction_metrics import Mean
        from keras.src.optimizers.base_optimizer import BaseOptimizer
        from keras.src.trainers.trainer import Trainer

        self._name_scope_stack = lambda: global_state.get_global_attribute("name_scope_stack") or []
        self._hook_after_method(core.name_scope, "__enter__", self._record_scope)
        self._call_with_new_operations(Mean, "update_state", self._record_metric_names)
        self._call_with_new_operations(Trainer, "compute_metrics", self._record_compiled_metric_names)
        self._call_with_new_operations(Loss, "__call__", self._record_loss_names)
        self._call_with_new_operations(self._tf.GradientTape, "gradient", self._record_gradient_sums)
        self._watched_optimizers = {BaseOptimizer}
        self._hook_before_method(BaseOptimizer, "apply", self._watch_optimizer)

    @property
    def names(self) -> Optional[GraphNames]:
        """The names of the function that this thread calls."""
        return current_graph_names()

    def _is_tracing(self) -> bool:
        return self.names is not None and not self._tf.executing_eagerly()

    # Scopes

    def _record_scope(self, scope) -> None:
        scope_name = self._tf.compat.v1.get_default_graph().get_name_scope()
        if not scope_name:
            return
        if isinstance(scope.caller, self._optimizer_class):
            self.names.add_scope(scope_name, "optimizer", scope.name)
        elif isinstance(scope.caller, self._layer_class):
            layer_names = [
                open_scope.name
                for open_scope in self._name_scope_stack()
                if isinstance(open_scope.caller, self._layer_class)
            ]
            self.names.add_scope(scope_name, "", ".".join(layer_names[1:] or layer_names))
        elif scope.name == "compile_loss":
            self.names.add_scope(scope_name, "loss", "compile_loss")

    # Operations outside of any scope

    def _record_metric_names(self, operations, metric, *args) -> None:
        for operation in operations:
            self.names.add_scope(operation.name, "metrics", metric.name)

    def _record_compiled_metric_names(self, operations, trainer, *args) -> None:
        for operation in operations:
            if self.names.find_module(operation.name) is None:
                self.names.add_scope(operation.name, "metrics", "compile_metrics")

    def _record_loss_names(self, operations, loss, *args) -> None:
        for operation in operations:
            if self.names.find_module(operation.name) is None:
                self.names.add_scope(operation.name, "loss", loss.name)

    def _record_gradient_sums(self, operations, *args) -> None:
        """Gives names to sums of gradients that reach a tensor on several paths. TensorFlow adds them outside of any
        scope; a sum gets the layer of its first input that has one."""
        for operation in operations:
            if "/" in operation.name:
                continue
            module = next(filter(None, (self.names.find_module(tensor.op.name) for tensor in operation.inputs)), None)
            if module is not None:
                self.names.add_scope(operation.name, "backward", module)

    def _record_layer_update(self, operations, optimizer, gradient, variable, *args) -> None:
        """Maps the variable to the Keras variable of the optimizer: a TensorFlow variable has no path."""
        keras_variable = optimizer._trainable_variables[optimizer._get_variable_index(variable)]
        layer_path = keras_variable.path.split("/")[:-1]
        for operation in operations:
            self.names.add_scope(
                operation.name, "optimizer", ".".join(layer_path[1:] or layer_path or [optimizer.name])
            )

    def _watch_optimizer(self, optimizer, *args) -> None:
        for optimizer_class in type(optimizer).__mro__:
            if "update_step" in vars(optimizer_class) and optimizer_class not in self._watched_optimizers:
                self._watched_optimizers.add(optimizer_class)
                self._call_with_new_operations(optimizer_class, "update_step", self._record_layer_update)

    # Wrappers, which do nothing outside of tracing

    def _hook_after_method(self, owner, method_name: str, hook) -> None:
        original_method, hook = getattr(owner, method_name), capture.suppress_failures(hook)

        @functools.wraps(original_method)
        def wrapper(*args, **kwargs):
            result = original_method(*args, **kwargs)
            if self._is_tracing():
                hook(*args)
            return result

        setattr(owner, method_name, wrapper)

    def _hook_before_method(self, owner, method_name: str, hook) -> None:
        original_method, hook = getattr(owner, method_name), capture.suppress_failures(hook)

        @functools.wraps(original_method)
        def wrapper(*args, **kwargs):
            if self._is_tracing():
                hook(*args)
            return original_method(*args, **kwargs)

        setattr(owner, method_name, wrapper)

    def _call_with_new_operations(self, owner, method_name: str, hook) -> None:
        """Calls `hook` with the operations that the call added to the graph."""
        original_method, hook = getattr(owner, method_name), capture.suppress_failures(hook)

        @functools.wraps(original_method)
        def wrapper(*args, **kwargs):
            if not self._is_tracing():
                return original_method(*args, **kwargs)
            graph = self._tf.compat.v1.get_default_graph()
            operation_count_before = len(graph.get_operations())
            result = original_method(*args, **kwargs)
            hook(_operations_from_index(graph, operation_count_before), *args)
            return result

        setattr(owner, method_name, wrapper)


def _operations_from_index(graph, first_index: int) -> List:
    return graph.get_operations()[first_index:]
