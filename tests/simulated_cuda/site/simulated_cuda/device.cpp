// The "cuda" device of the simulation: host memory that carries a CUDA device
// index. It uses torch's real CUDA dispatch key, so that torch's own code for
// devices, autograd, DDP and error messages runs unchanged. Almost every operator
// is computed by its CPU kernel; in front of it stand the checks a GPU build makes.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace simulated_cuda {

using c10::Device;
using c10::DeviceIndex;
using c10::DispatchKey;
using c10::DispatchKeySet;
constexpr auto kDeviceType = c10::DeviceType::CUDA;

// ------------------------------------------------------------ the current device

thread_local DeviceIndex current_index = 0;

DeviceIndex device_count() {
  static const DeviceIndex count = [] {
    const char* text = std::getenv("SIMULATED_CUDA_DEVICE_COUNT");
    return static_cast<DeviceIndex>(text ? std::atoi(text) : 2);
  }();
  return count;
}

void set_device(DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < device_count(), "CUDA error: invalid device ordinal");
  current_index = index;
}

DeviceIndex index_or_current(Device device) {
  return device.has_index() ? device.index() : current_index;
}

// A process that forked after using CUDA cannot use it in the child.
std::atomic<bool> forked_after_use{false};

// ------------------------------------------------------------ streams and events
// Everything runs at once, in order; streams and events only need to exist, to
// compare unequal and (events) to know the time at which they were recorded.

thread_local std::map<DeviceIndex, c10::StreamId> current_streams;
std::atomic<c10::StreamId> last_stream_id{0};

using Clock = std::chrono::steady_clock;

struct DeviceGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDeviceType;
  }
  DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  Device getDevice() const override {
    return Device(kDeviceType, current_index);
  }
  void setDevice(Device device) const override {
    set_device(index_or_current(device));
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    current_index = index_or_current(device);
  }
  Device exchangeDevice(Device device) const override {
    Device previous = getDevice();
    setDevice(device);
    return previous;
  }

  c10::Stream getDefaultStream(Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, Device(kDeviceType, index_or_current(device)));
  }
  c10::Stream getStream(Device device) const noexcept override {
    const auto index = index_or_current(device);
    return c10::Stream(c10::Stream::UNSAFE, Device(kDeviceType, index), current_streams[index]);
  }
  c10::Stream getNewStream(Device device, int) const override {
    return c10::Stream(
        c10::Stream::UNSAFE, Device(kDeviceType, index_or_current(device)), ++last_stream_id);
  }
  c10::Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    c10::Stream previous = getStream(stream.device());
    current_streams[stream.device_index()] = stream.id();
    return previous;
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(DeviceIndex) const override {}

  void record(void** event, const c10::Stream&, DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new Clock::time_point;
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  double elapsedTime(void* start, void* end, DeviceIndex) const override {
    const auto passed =
        *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(start);
    return std::chrono::duration<double, std::milli>(passed).count();
  }
  bool queryEvent(void*) const override {
    return true;
  }
  void block(void*, const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, DeviceGuard);

// ------------------------------------------------------------ memory

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK(
        !forked_after_use,
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
        "multiprocessing, you must use the 'spawn' start method");
    void* memory = c10::alloc_cpu(bytes);
    return {memory, memory, &c10::free_cpu, Device(kDeviceType, current_index)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &c10::free_cpu;
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};
DeviceAllocator device_allocator;
REGISTER_ALLOCATOR(kDeviceType, &device_allocator);

// Pinned host memory is ordinary memory whose addresses are remembered, because
// DDP's reducer and user code ask is_pinned().
std::mutex pinned_mutex;
std::map<uintptr_t, size_t> pinned_blocks;

struct PinnedAllocator final : c10::Allocator {
  static void release(void* memory) {
    {
      std::lock_guard<std::mutex> lock(pinned_mutex);
      pinned_blocks.erase(reinterpret_cast<uintptr_t>(memory));
    }
    c10::free_cpu(memory);
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = c10::alloc_cpu(bytes);
    if (memory) {
      std::lock_guard<std::mutex> lock(pinned_mutex);
      pinned_blocks[reinterpret_cast<uintptr_t>(memory)] = bytes;
    }
    return {memory, memory, &release, Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};
PinnedAllocator pinned_allocator;

bool is_pinned(const void* pointer) {
  std::lock_guard<std::mutex> lock(pinned_mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto next = pinned_blocks.upper_bound(address);
  if (next == pinned_blocks.begin()) return false;
  const auto block = std::prev(next);
  return address < block->first + block->second;
}

void resize_storage(const c10::Storage& storage, size_t bytes) {
  auto* impl = storage.unsafeGetStorageImpl();
  auto fresh = device_allocator.allocate(bytes);
  fresh.unsafe_set_device(impl->device());
  const size_t kept = std::min(bytes, impl->nbytes());
  if (kept) std::memcpy(fresh.mutable_get(), impl->data(), kept);
  impl->set_data_ptr_noswap(std::move(fresh));
  impl->set_nbytes(bytes);
}

// A CPU tensor over the same bytes; it keeps the storage alive.
at::Tensor as_host(const at::Tensor& tensor) {
  if (!tensor.is_cuda()) return tensor;
  auto storage = tensor.storage();
  auto host = at::from_blob(
      tensor.data_ptr(),
      tensor.sizes(),
      tensor.strides(),
      [storage](void*) {},
      tensor.options().device(c10::kCPU));
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

// ------------------------------------------------------------ random numbers
// Each device has a generator of its own. It is a CPU engine that says it is CUDA.

struct DeviceGenerator final : at::CPUGeneratorImpl {
  explicit DeviceGenerator(
      DeviceIndex index, uint64_t seed = c10::detail::getNonDeterministicRandom())
      : CPUGeneratorImpl(seed) {
    device_ = Device(kDeviceType, index);
    key_set_ = DispatchKeySet(DispatchKey::CUDA);
  }

 private:
  at::CPUGeneratorImpl* clone_impl() const override {
    auto* copy = new DeviceGenerator(device_.index(), 0);
    copy->set_state(*get_state());
    return copy;
  }
};

const at::Generator& default_generator(DeviceIndex index) {
  static const std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> made;
    for (DeviceIndex i = 0; i < device_count(); ++i)
      made.push_back(at::make_generator<DeviceGenerator>(i, c10::default_rng_seed_val));
    return made;
  }();
  return generators.at(index < 0 ? current_index : index);
}

// ------------------------------------------------------------ operators with a kernel of their own

at::Tensor empty(
    c10::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<Device> device,
    std::optional<bool>,
    std::optional<at::MemoryFormat> memory_format) {
  c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(
      size,
      &device_allocator,
      DispatchKeySet(DispatchKey::CUDA),
      c10::dtype_or_default(dtype),
      memory_format);
}

at::Tensor empty_strided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<Device> device,
    std::optional<bool>) {
  c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(
      size,
      stride,
      &device_allocator,
      DispatchKeySet(DispatchKey::CUDA),
      c10::dtype_or_default(dtype));
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool) {
  as_host(self).copy_(as_host(source));
  return self;
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool) {
  as_host(target).copy_(as_host(source));
  return target;
}

const at::Tensor& resize_(
    const at::Tensor& self,
    c10::IntArrayRef size,
    std::optional<at::MemoryFormat> memory_format) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (memory_format && *memory_format != at::MemoryFormat::Preserve)
    impl->empty_tensor_restride(*memory_format);
  const size_t needed = (impl->storage_offset() + impl->numel()) * impl->dtype().itemsize();
  if (self.storage().nbytes() < needed) resize_storage(self.storage(), needed);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  if (source.sizes() != target.sizes()) resize_(target, source.sizes(), std::nullopt);
  return copy_from(source, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  return as_host(self).item();
}

at::Tensor& set_storage(
    at::Tensor& self,
    at::Storage source,
    int64_t offset,
    c10::IntArrayRef size,
    c10::IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_storage_offset(offset);
  if (stride.data()) {
    impl->set_sizes_and_strides(size, stride);
  } else {
    impl->set_sizes_contiguous(size);
  }
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const int64_t elements = source.nbytes() / self.dtype().itemsize();
  return set_storage(self, std::move(source), 0, {elements}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(
      self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

// ------------------------------------------------------------ every other operator

bool is_indexing(const std::string& name) {
  return name == "aten::index" || name == "aten::_unsafe_index" || name == "aten::index_put" ||
      name == "aten::index_put_" || name == "aten::_index_put_impl_" ||
      name == "aten::_unsafe_index_put";
}

// Finds the device an operator runs on and refuses what a GPU build refuses.
// A CPU tensor without dimensions counts as a number and may go with any device.
class DeviceCheck {
 public:
  explicit DeviceCheck(const c10::OperatorHandle& op)
      : name_(op.schema().name()),
        elementwise_(op.hasTag(at::Tag::pointwise) || is_indexing(name_)) {}

  void tensor(const at::Tensor& tensor, const std::string& argument) {
    if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return;
    if (!common_) common_ = tensor.device();
    // the one operator that copies between devices list by list
    if (*common_ == tensor.device() || name_ == "aten::_foreach_copy_") return;
    if (elementwise_) {
      const Device other = common_->is_cpu() ? *common_ : tensor.device();
      const Device first = common_->is_cpu() ? tensor.device() : *common_;
      TORCH_CHECK(
          false,
          "Expected all tensors to be on the same device, but found at least two devices, ",
          first, " and ", other, "!");
    }
    const std::string method = "wrapper_CUDA_" + name_.substr(name_.rfind(':') + 1);
    c10::impl::common_device_check_failure(*common_, tensor, method.c_str(), argument.c_str());
  }

  // The index tensors of x[...] may also be on the CPU.
  void indices(const std::vector<std::optional<at::Tensor>>& indices) {
    for (const auto& index : indices) {
      if (!index || !index->defined() || index->is_cpu()) continue;
      TORCH_CHECK(
          common_ && index->device() == *common_,
          "indices should be either on cpu or on the same device as the indexed tensor (",
          common_ ? *common_ : Device(c10::kCPU), ")");
    }
  }

  std::optional<Device> common() const {
    return common_;
  }

 private:
  std::string name_;
  bool elementwise_;  // torch words the refusal differently for these
  std::optional<Device> common_;
};

bool takes_generator(const c10::Argument& argument) {
  auto type = argument.type();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->castRaw<c10::OptionalType>()->getElementType();
  return type->kind() == c10::TypeKind::GeneratorType;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  const bool indexing = is_indexing(op.schema().name());

  DeviceCheck check(op);
  std::optional<Device> requested;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& value = (*stack)[first + i];
    const auto& name = arguments[i].name();
    if (value.isTensor()) {
      check.tensor(value.toTensor(), name);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) check.tensor(tensor, name);
    } else if (value.isOptionalTensorList()) {
      const auto tensors = value.toOptionalTensorVector();
      if (indexing) {
        check.indices(tensors);
      } else {
        for (const auto& tensor : tensors)
          if (tensor) check.tensor(*tensor, name);
      }
    } else if (value.isDevice()) {
      requested = value.toDevice();
    }
  }
  const auto common = check.common();
  const bool on_host = common && common->is_cpu();
  const DeviceIndex index = common && !on_host ? common->index()
      : requested                              ? index_or_current(*requested)
                                               : current_index;

  // The CPU kernel wants a CPU generator: lend it one with the state of ours.
  std::optional<at::Generator> ours;
  std::optional<at::Generator> lent;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!takes_generator(arguments[i])) continue;
    auto& value = (*stack)[first + i];
    const at::Generator given = value.isNone() ? default_generator(index) : value.toGenerator();
    const auto expected = on_host ? c10::DeviceType::CPU : kDeviceType;
    TORCH_CHECK(
        given.device().type() == expected,
        "Expected a '", expected, "' device type for generator but found '",
        given.device().type(), "'");
    ours = given;
    lent = at::make_generator<at::CPUGeneratorImpl>();
    lent->set_state(given.get_state());
    value = *lent;
  }

  c10::OptionalDeviceGuard guard(Device(kDeviceType, index));
  at::native::cpu_fallback(op, stack);
  if (ours) ours->set_state(lent->get_state());
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy_);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", local_scalar_dense);
  library.impl("resize_", resize_);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("record_stream", [](at::Tensor&, c10::Stream) {});

  // views must share the storage, so they cannot go through a copy on the CPU
  using View = at::Tensor (*)(const at::Tensor&, c10::IntArrayRef);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", TORCH_FN(static_cast<View>(at::native::view)));
  library.impl("_reshape_alias", at::native::_reshape_alias);

  // torch's generic kernel for this one looks for a CUDA part that is not there
  library.impl(
      "convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  // left to torch, these two resize an output and warn about it
  library.impl("mse_loss", torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  library.impl("smooth_l1_loss", torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

// ------------------------------------------------------------ for the Python side

TORCH_LIBRARY(simulated_cuda, library) {
  library.def("set_device(int index) -> ()", [](int64_t index) {
    set_device(static_cast<DeviceIndex>(index));
  });
  library.def("current_device() -> int", []() { return int64_t(current_index); });
  library.def("device_count() -> int", []() { return int64_t(device_count()); });
  library.def("default_generator(int index) -> Generator?", [](int64_t index) {
    return std::optional<at::Generator>(default_generator(static_cast<DeviceIndex>(index)));
  });
  library.def("new_generator(int index) -> Generator?", [](int64_t index) {
    const auto on = index_or_current(Device(kDeviceType, static_cast<DeviceIndex>(index)));
    return std::optional<at::Generator>(at::make_generator<DeviceGenerator>(on));
  });
  library.def(
      "resize_storage(Tensor tensor, int bytes) -> ()",
      [](const at::Tensor& tensor, int64_t bytes) { resize_storage(tensor.storage(), bytes); });
  library.def("mark_forked_after_use() -> ()", []() { forked_after_use = true; });
}

}  // namespace simulated_cuda

// torch looks the hooks up once, by this name, when it is imported: the library
// has to be loaded before.
namespace at {
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  // torch before 2.7 does not ask these two, so they override nothing there
  bool isBuilt() const {
    return true;
  }
  bool isAvailable() const {
    return simulated_cuda::device_count() > 0;
  }
  bool hasCUDA() const override {
    return simulated_cuda::device_count() > 0;
  }
  bool hasPrimaryContext(DeviceIndex) const override {
    return true;
  }
  DeviceIndex deviceCount() const override {
    return simulated_cuda::device_count();
  }
  int getNumGPUs() const override {
    return simulated_cuda::device_count();
  }
  DeviceIndex current_device() const override {
    return simulated_cuda::current_index;
  }
  DeviceIndex getCurrentDevice() const override {
    return simulated_cuda::current_index;
  }
  void setCurrentDevice(DeviceIndex index) const override {
    simulated_cuda::set_device(index);
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    const auto previous = simulated_cuda::current_index;
    simulated_cuda::set_device(index);
    return previous;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  const Generator& getDefaultGenerator(DeviceIndex index) const override {
    return simulated_cuda::default_generator(index);
  }
  Generator getNewGenerator(DeviceIndex index) const override {
    return make_generator<simulated_cuda::DeviceGenerator>(
        index < 0 ? simulated_cuda::current_index : index);
  }
  Device getDeviceFromPtr(void*) const override {
    return Device(kCUDA, simulated_cuda::current_index);
  }
  bool isPinnedPtr(const void* pointer) const override {
    return simulated_cuda::is_pinned(pointer);
  }
  Allocator* getPinnedMemoryAllocator() const override {
    return &simulated_cuda::pinned_allocator;
  }
  Allocator* getCUDADeviceAllocator() const override {
    return &simulated_cuda::device_allocator;
  }
  void deviceSynchronize(DeviceIndex) const override {}
};
REGISTER_CUDA_HOOKS(CUDAHooks);
}  // namespace at
