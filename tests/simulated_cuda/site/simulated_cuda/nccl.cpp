// The backend "nccl" of the simulation: it looks at the bytes of a cuda tensor as a
// CPU tensor and hands that to gloo. It is registered for cuda devices only, so that
// torch's own ProcessGroup refuses CPU tensors in the words users see with NCCL.

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/library.h>

// DDP's logger asks for a timer by device type and fails without one.
namespace c10d {
struct SimulatedCudaTimer final : Timer {
  explicit SimulatedCudaTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto from = getTimestamp(start);
    const auto to = getTimestamp(end);
    if (!from || !to) return std::nullopt;
    return *to - *from;
  }
};
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::DeviceType::CUDA, SimulatedCudaTimer)
}  // namespace c10d

namespace simulated_cuda {

using namespace c10d;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<Work>;
using BackendPtr = c10::intrusive_ptr<Backend>;

namespace {

at::Tensor host(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_cuda() && !tensor.is_sparse(), "Tensors must be CUDA and dense");
  TORCH_CHECK(tensor.is_contiguous(), "Tensors must be contiguous");
  auto storage = tensor.storage();
  return at::from_blob(
      tensor.data_ptr(),
      tensor.sizes(),
      [storage](void*) {},
      tensor.options().device(c10::kCPU));
}

Tensors host(const Tensors& tensors) {
  Tensors result;
  for (const auto& tensor : tensors) result.push_back(host(tensor));
  return result;
}

TensorLists host(const TensorLists& lists) {
  TensorLists result;
  for (const auto& list : lists) result.push_back(host(list));
  return result;
}

Tensors flat(const TensorLists& lists) {
  Tensors result;
  for (const auto& list : lists) result.insert(result.end(), list.begin(), list.end());
  return result;
}

// gloo's work item, except that its results are the caller's cuda tensors.
struct DeviceWork final : Work {
  DeviceWork(WorkPtr gloo, Tensors outputs)
      : gloo_(std::move(gloo)), outputs_(std::move(outputs)) {}
  bool isCompleted() override {
    return gloo_->isCompleted();
  }
  bool isSuccess() const override {
    return gloo_->isSuccess();
  }
  std::exception_ptr exception() const override {
    return gloo_->exception();
  }
  bool wait(std::chrono::milliseconds timeout) override {
    return gloo_->wait(timeout);
  }
  void synchronize() override {
    gloo_->synchronize();
  }
  int sourceRank() const override {
    return gloo_->sourceRank();
  }
  Tensors result() override {
    return outputs_;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    return gloo_->getFuture()->then(
        [outputs = outputs_](c10::ivalue::Future& finished) {
          finished.value();  // raises if the collective failed
          return c10::IValue(outputs);
        },
        c10::ListType::ofTensors());
  }

 private:
  WorkPtr gloo_;
  Tensors outputs_;
};

WorkPtr work(WorkPtr gloo, Tensors outputs = {}) {
  return c10::make_intrusive<DeviceWork>(std::move(gloo), std::move(outputs));
}

class DeviceBackend final : public Backend {
 public:
  explicit DeviceBackend(BackendPtr gloo)
      : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override {
    return "nccl";
  }

  WorkPtr broadcast(Tensors& tensors, const BroadcastOptions& options) override {
    auto on_host = host(tensors);
    return work(gloo_->broadcast(on_host, options), tensors);
  }

  WorkPtr allreduce(Tensors& tensors, const AllreduceOptions& options) override {
    auto on_host = host(tensors);
    const bool averages = options.reduceOp == ReduceOp::AVG;
    const bool is_short = at::isReducedFloatingType(on_host.at(0).scalar_type());
    if (!averages && !is_short) return work(gloo_->allreduce(on_host, options), tensors);
    // NCCL averages; gloo refuses to do so with integers, and an older one with any type. Some builds of gloo, such as
    // Debian's beside torch 2.14.1, have no 16-bit floats: they are reduced as float32.
    auto given = options;
    if (averages) given.reduceOp = ReduceOp::SUM;
    Tensors reduced;
    for (const auto& tensor : on_host) reduced.push_back(is_short ? tensor.to(at::kFloat) : tensor);
    auto finished = gloo_->allreduce(reduced, given);
    finished->wait();
    for (size_t number = 0; number < reduced.size(); ++number) {
      auto& tensor = reduced[number];
      const bool integers = at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
      if (averages && integers) {
        tensor.div_(getSize(), "trunc");
      } else if (averages) {
        tensor.div_(getSize());
      }
      if (is_short) on_host[number].copy_(tensor);
    }
    return work(finished, tensors);
  }

  WorkPtr allreduce_coalesced(Tensors& tensors, const AllreduceCoalescedOptions& options) override {
    auto on_host = host(tensors);
    return work(gloo_->allreduce_coalesced(on_host, options), tensors);
  }

  WorkPtr reduce(Tensors& tensors, const ReduceOptions& options) override {
    auto on_host = host(tensors);
    return work(gloo_->reduce(on_host, options), tensors);
  }

  WorkPtr allgather(
      TensorLists& outputs,
      Tensors& inputs,
      const AllgatherOptions& options) override {
    auto to = host(outputs);
    auto from = host(inputs);
    return work(gloo_->allgather(to, from, options), flat(outputs));
  }

  WorkPtr _allgather_base(
      at::Tensor& output,
      at::Tensor& input,
      const AllgatherOptions& options) override {
    auto to = host(output).view(-1);
    auto from = host(input).view(-1);
    return work(gloo_->_allgather_base(to, from, options), {output});
  }

  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const GatherOptions& options) override {
    auto to = host(outputs);
    auto from = host(inputs);
    return work(gloo_->gather(to, from, options), flat(outputs));
  }

  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const ScatterOptions& options) override {
    auto to = host(outputs);
    auto from = host(inputs);
    return work(gloo_->scatter(to, from, options), outputs);
  }

  WorkPtr reduce_scatter(
      Tensors& outputs,
      TensorLists& inputs,
      const ReduceScatterOptions& options) override {
    auto to = host(outputs);
    auto from = host(inputs);
    return work(gloo_->reduce_scatter(to, from, options), outputs);
  }

  WorkPtr _reduce_scatter_base(
      at::Tensor& output,
      at::Tensor& input,
      const ReduceScatterOptions& options) override {
    auto to = host(output).view(-1);
    auto from = host(input).view(-1);
    return work(gloo_->_reduce_scatter_base(to, from, options), {output});
  }

  WorkPtr alltoall_base(
      at::Tensor& output,
      at::Tensor& input,
      std::vector<int64_t>& output_sizes,
      std::vector<int64_t>& input_sizes,
      const AllToAllOptions& options) override {
    auto to = host(output);
    auto from = host(input);
    return work(gloo_->alltoall_base(to, from, output_sizes, input_sizes, options), {output});
  }

  WorkPtr send(Tensors& tensors, int rank, int tag) override {
    auto on_host = host(tensors);
    return work(gloo_->send(on_host, rank, tag), tensors);
  }

  WorkPtr recv(Tensors& tensors, int rank, int tag) override {
    auto on_host = host(tensors);
    return work(gloo_->recv(on_host, rank, tag), tensors);
  }

  WorkPtr barrier(const BarrierOptions& options) override {
    auto without_device = options;  // gloo refuses a cuda device here
    without_device.device = std::nullopt;
    without_device.device_ids.clear();
    return work(gloo_->barrier(without_device));
  }

  void setSequenceNumberForGroup() override {
    gloo_->setSequenceNumberForGroup();
  }
  uint64_t getSequenceNumberForGroup() override {
    return gloo_->getSequenceNumberForGroup();
  }

  // an older torch has no such functions of a backend, so they override nothing there
  void setTimeout(std::chrono::milliseconds timeout) {
    [timeout](auto& gloo) {
      if constexpr (requires { gloo.setTimeout(timeout); }) gloo.setTimeout(timeout);
    }(*gloo_);
  }
  void abort() {
    [](auto& gloo) {
      if constexpr (requires { gloo.abort(); }) gloo.abort();
    }(*gloo_);
  }
  void shutdown() {
    [](auto& gloo) {
      if constexpr (requires { gloo.shutdown(); }) gloo.shutdown();
    }(*gloo_);
  }

 private:
  BackendPtr gloo_;
};

// The group comes with gloo for the CPU and gets our backend, on top of it, for cuda.
// Passing a whole group, which torch.ops can do, spares this file Python's headers.
void add_device_backend(const c10::intrusive_ptr<ProcessGroup>& group) {
  group->setBackend(
      c10::DeviceType::CUDA,
      ProcessGroup::BackendType::NCCL,
      c10::make_intrusive<DeviceBackend>(group->getBackend(c10::DeviceType::CPU)));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(simulated_cuda, library) {
  library.def(
      "add_device_backend(__torch__.torch.classes.c10d.ProcessGroup group) -> ()",
      add_device_backend);
}

}  // namespace simulated_cuda
