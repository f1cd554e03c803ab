"""Issues 20388 and 21232: a step that logs GPU tensors waits for the GPU only when the logger gets them."""

import pytest
import torch

from tests.support.variants import Variant, run


@pytest.mark.skipif(not hasattr(torch._C, "_cuda_set_sync_debug_mode"), reason="this device cannot tell waits")
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_thousand_steps_with_ten_metrics_cause_no_wait(version):
    toggle = "default,progress-bar-without-wait"  # the metrics are for the progress bar, too
    result = run("gpu_sync_errors", Variant("lightning", version, shim=True), toggle=toggle, fresh=True)
    assert result.ok, result
    assert result.observations == [{"steps": 1000 - 1 - 20}]


@pytest.mark.skipif(not hasattr(torch._C, "_cuda_set_sync_debug_mode"), reason="this device cannot tell waits")
def test_wait_is_an_error_on_stock():
    result = run("gpu_sync_errors", Variant("lightning", "2.6.6"), fresh=True)
    assert not result.ok and "synchroniz" in result.output, result
