"""Losses on a device's memory, with the emulated device: its memory is the host's, shown by __cuda_array_interface__."""

import ctypes
import os
import sys
import unittest
from typing import Any, List, Optional, Tuple
from unittest import mock

import numpy as np

import kith
from kith import _dlpack, _library

import support

PLUGINS = os.path.join(support.BUILD, "test", "plugins")
if not support.BUILD or not os.path.exists(os.path.join(PLUGINS, "libkith-cuda.so")):
    raise unittest.SkipTest("the emulated device is not here")
os.environ["KITH_PLUGINS"] = PLUGINS


class OnDevice:
    """What CuPy's arrays and torch's tensors show of themselves."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.__cuda_array_interface__ = {"shape": values.shape, "typestr": values.dtype.str, "version": 3,
                                         "strides": None if values.flags.c_contiguous else values.strides,
                                         "data": (values.ctypes.data, False)}


class ByDlpack:
    """What shows itself by DLPack alone, here as memory of a CUDA device: numpy's own capsule with another device in it."""

    def __init__(self, values: Any, device: int = 2) -> None:
        self.values, self.device, self.streams = values, device, []  # type: Any, int, List[int]

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, stream: Optional[int] = None) -> Any:
        capsule = self.values.__dlpack__()
        _dlpack._Tensor.from_address(_dlpack._pointer(capsule, b"dltensor")).device_type = self.device
        self.streams.append(-1 if stream is None else stream)
        return capsule


def like(values: Any) -> OnDevice:
    return OnDevice(np.full_like(values, np.nan))


class Queued(unittest.TestCase):
    def setUp(self) -> None:
        self.x, y = support.clusters(6, 4, 12)
        self.y = y.astype(np.int32)

    def compare(self, loss: kith.Loss, host: kith.Loss) -> None:
        for step in range(4):  # from the third on it is launched from a recording
            x = np.roll(self.x, step, axis=1)
            gradient, total = like(x), OnDevice(np.zeros(()))
            loss.queue(OnDevice(x), OnDevice(self.y), gradient, total=total)
            wanted = host.value_and_gradient(x, self.y)
            np.testing.assert_allclose(gradient.values, wanted.gradient, atol=1e-5 * np.abs(wanted.gradient).max())
            self.assertAlmostEqual(float(total.values), wanted.value, delta=1e-5 * abs(wanted.value))
            self.assertEqual(list(loss.terms), list(wanted.terms))
        self.assertEqual(loss.step, 4)

    def test_the_hosts_numbers(self) -> None:
        def make() -> kith.Loss:
            return kith.Loss("binomial", beta=40, miner="vthm", regularizers=[{"name": "norm_l2", "weight": 0.1}])

        self.compare(make(), make())

    def test_what_is_learned(self) -> None:
        loss, host = (kith.Loss("proxy_anchor", n_classes=6, dim=12) for _ in range(2))
        self.compare(loss, host)
        gradient = next(one for one in loss._parameters).gradient()
        wanted = host.value_and_gradient(np.roll(self.x, 3, axis=1), self.y).state_gradients["proxies"]
        np.testing.assert_allclose(gradient, wanted, atol=1e-5 * np.abs(wanted).max())

    def test_arrays_with_dlpack_alone(self) -> None:
        loss, gradient, total = kith.Loss("binomial"), ByDlpack(np.full_like(self.x, np.nan)), ByDlpack(np.zeros(()))
        x, y = ByDlpack(self.x), ByDlpack(self.y)
        before = sys.getrefcount(self.x)
        loss.queue(x, y, gradient, total=total)
        self.assertEqual(sys.getrefcount(self.x), before)  # the capsules were given back
        wanted = kith.Loss("binomial").value_and_gradient(self.x, self.y)
        np.testing.assert_allclose(gradient.values, wanted.gradient, atol=1e-6)
        self.assertAlmostEqual(float(total.values), wanted.value, places=6)
        self.assertEqual(set(x.streams), {1})  # CUDA's default stream, as DLPack numbers it
        with self.assertRaisesRegex(TypeError, "y holds <i8; wanted <i4"):
            loss.queue(x, ByDlpack(self.y.astype(np.int64)), gradient)
        with self.assertRaisesRegex(ValueError, "embedding is not in C order"):
            loss.queue(ByDlpack(np.asfortranarray(self.x)), y, gradient)
        with self.assertRaisesRegex(TypeError, "ByDlpack; wanted an array with __cuda_array_interface__ or DLPack"):
            loss.queue(ByDlpack(self.x, device=1), y, gradient)
        with self.assertRaisesRegex(TypeError, "not in the memory of a CUDA device"):
            loss.queue(ByDlpack(self.x, device=10), y, gradient)

    def test_back_on_the_host(self) -> None:
        loss = kith.Loss("binomial")
        wanted = loss.value_and_gradient(self.x, self.y).value
        loss.queue(OnDevice(self.x), OnDevice(self.y), like(self.x))
        self.assertEqual(loss.value_and_gradient(self.x, self.y).value, wanted)

    def test_what_stops_at_the_embedding(self) -> None:
        loss = kith.Loss("binomial", regularizers=["energy_confusion"])
        gradient, stopped = like(self.x), like(self.x)
        loss.queue(OnDevice(self.x), OnDevice(self.y), gradient, stopped=stopped)
        wanted = kith.Loss("binomial", regularizers=["energy_confusion"]).value_and_gradient(self.x, self.y)
        np.testing.assert_allclose(gradient.values + stopped.values, wanted.gradient, atol=1e-6)
        with self.assertRaisesRegex(kith.Error, "stops at the embedding"):
            loss.queue(OnDevice(self.x), OnDevice(self.y), gradient)

    def test_refused(self) -> None:
        loss = kith.Loss("binomial")
        x, y, gradient = OnDevice(self.x), OnDevice(self.y), like(self.x)
        with self.assertRaisesRegex(TypeError, "y holds <i8; wanted <i4"):
            loss.queue(x, OnDevice(self.y.astype(np.int64)), gradient)
        with self.assertRaisesRegex(TypeError, "embedding is ndarray; wanted an array with __cuda_array_interface__ or DLPack"):
            kith.Loss("binomial", dim=12).queue(self.x, y, gradient)
        with self.assertRaisesRegex(ValueError, "embedding is not in C order"):
            loss.queue(OnDevice(np.asfortranarray(self.x)), y, gradient)
        with self.assertRaisesRegex(ValueError, r"the gradient of embedding has the shape \[24, 6\]; wanted \[24, 12\]"):
            loss.queue(x, y, like(self.x[:, :6].copy()))
        bad = self.x.copy()
        bad[0, 0] = np.nan
        loss.queue(OnDevice(bad), y, gradient)
        with self.assertRaisesRegex(kith.Error, "NaN"):
            loss.terms


class InTorch(unittest.TestCase):
    """What is done with tensors of a CUDA device, on tensors of the host that pretend to be there."""

    def setUp(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not here")
        from kith import _torch_device

        self.torch, self.function = torch, _torch_device.EvaluateOnDevice
        stream = mock.patch("kith._torch_device._stream", return_value=0)
        stream.start()
        self.addCleanup(stream.stop)

    def compare(self, **how: Any) -> None:
        x, y = support.clusters(6, 4, 12)
        leaf, labels = self.torch.from_numpy(x).requires_grad_(), self.torch.from_numpy(y)
        loss, host = (kith.Loss(dim=12, n_classes=6, **how) for _ in range(2))
        value = self.function.apply(loss, ("embedding",), labels, None, leaf, *loss.parameters())
        wanted = host.value_and_gradient(x, y)
        self.assertAlmostEqual(value.item(), wanted.value, delta=1e-5 * abs(wanted.value))
        (2 * value).backward()
        np.testing.assert_allclose(leaf.grad.numpy(), 2 * wanted.gradient, atol=2e-5 * np.abs(wanted.gradient).max())
        for parameter, gradient in zip(loss.parameters(), wanted.state_gradients.values()):
            np.testing.assert_allclose(parameter.grad.numpy(), 2 * gradient, atol=2e-5 * np.abs(gradient).max())

    def test_a_loss(self) -> None:
        self.compare(name="binomial", miner="vthm")

    def test_a_loss_that_learns(self) -> None:
        self.compare(name="proxy_anchor")

    def test_tensors_of_other_types(self) -> None:
        """bfloat16 embeddings, int64 labels with gaps: both are converted, and the results come back as they came."""
        x, y = support.clusters(6, 4, 12)
        leaf = self.torch.from_numpy(x).to(self.torch.bfloat16).requires_grad_()
        labels = self.torch.from_numpy(np.repeat(y, 2))[::2]
        value = self.function.apply(kith.Loss("binomial", dim=12), ("embedding",), labels, None, leaf)
        value.backward()
        wanted = kith.Loss("binomial").value_and_gradient(leaf.detach().float().numpy(), y)
        self.assertEqual((value.dtype, leaf.grad.dtype), (self.torch.bfloat16,) * 2)
        self.assertAlmostEqual(value.item(), wanted.value, delta=1e-2 * abs(wanted.value))
        np.testing.assert_allclose(leaf.grad.float().numpy(), wanted.gradient, atol=1e-2 * np.abs(wanted.gradient).max())

    def test_a_tap_does_not_stay_for_the_next_batch(self) -> None:
        """The batch is filled again and again: what a step does not give must not be there from the one before."""
        x, y = support.clusters(6, 4, 12)
        leaf, labels = self.torch.from_numpy(x).requires_grad_(), self.torch.from_numpy(y)
        loss = kith.Loss("binomial", dim=12)
        pooled = self.torch.zeros(24, 5, requires_grad=True)
        self.function.apply(loss, ("embedding", "pooled"), labels, None, leaf, pooled).backward()
        self.assertEqual(float(pooled.grad.abs().sum()), 0)
        before = leaf.grad.clone()
        self.function.apply(loss, ("embedding",), labels, None, leaf).backward()
        self.assertEqual(loss._device_batch.words[loss._device_batch.taps["pooled"][0]], 0)
        np.testing.assert_array_equal((leaf.grad - before).numpy(), before.numpy())

    def test_no_second_derivatives(self) -> None:
        x, y = support.clusters(6, 4, 12)
        leaf = self.torch.from_numpy(x).requires_grad_()
        value = self.function.apply(kith.Loss("binomial", dim=12), ("embedding",), self.torch.from_numpy(y), None, leaf)
        gradient, = self.torch.autograd.grad(value * value, leaf, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "once_differentiable"):
            gradient.sum().backward()

    def test_refused(self) -> None:
        x, y = support.clusters(6, 4, 12)
        leaf, labels = self.torch.from_numpy(x).requires_grad_(), self.torch.from_numpy(y)
        for tensors, wanted in (((leaf, labels[:, None]), r"y has the shape \[24, 1\]; wanted \[n\]"),
                                ((leaf[0], labels), r"embedding has the shape \[12\]; wanted \[rows, values\]"),
                                ((leaf, labels[1:]), "wanted 23 rows")):
            with self.assertRaisesRegex((ValueError, kith.Error), wanted):
                self.function.apply(kith.Loss("binomial", dim=12), ("embedding",), tensors[1], None, tensors[0])

    def test_the_structs_of_the_benchmark(self) -> None:
        """bench/python_cuda.py has them by hand, for machines without cffi."""
        folder = os.path.join(support.SOURCE, "bench")
        with mock.patch.object(sys, "path", [folder, *sys.path]):
            import python_cuda  # type: ignore[import-not-found]

        theirs = python_cuda.Batch(ctypes.CDLL(_library._places()[0]))
        ours = kith.Loss("binomial")._device_batch
        self.assertEqual((theirs.at, len(theirs.words), theirs.words[0]), (ours.at, len(ours.words), ours.words[0]))
        self.assertEqual(theirs.taps["embedding"], ours.taps["embedding"])
