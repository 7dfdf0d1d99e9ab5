/// Working memory for callers that come and go: one object for each that is here at the same time,
/// kept for the next.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace chunkio::base {

template <class T>
class ScratchPool {
 public:
  /// Takes an object and puts it back at its end.
  class Lease {
   public:
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.free_.push_back(std::move(object_));
    }
    [[nodiscard]] T& operator*() const noexcept { return *object_; }
    [[nodiscard]] T* operator->() const noexcept { return object_.get(); }

   private:
    friend class ScratchPool;
    template <class Make, class Fits>
    Lease(ScratchPool& pool, Make make, Fits fits) : pool_(pool) {
      {
        const std::lock_guard lock(pool_.mutex_);
        if (!pool_.free_.empty()) {
          object_ = std::move(pool_.free_.back());
          pool_.free_.pop_back();
        } else {
          // Room to put it back, so that the destructor cannot fail.
          pool_.free_.reserve(++pool_.made_);
        }
      }
      if (object_ && fits(*object_)) return;
      object_.reset();
      object_ = make();
    }

    ScratchPool& pool_;
    std::unique_ptr<T> object_;
  };

  /// \param make  returns a new std::unique_ptr<T>; called without a lock, if all are taken.
  template <class Make>
  [[nodiscard]] Lease take(Make make) {
    return Lease(*this, std::move(make), [](const T&) { return true; });
  }
  /// \param fits  whether an object that another caller made will do; if not, make() replaces it.
  template <class Make, class Fits>
  [[nodiscard]] Lease take(Make make, Fits fits) {
    return Lease(*this, std::move(make), std::move(fits));
  }

 private:
  std::mutex mutex_;
  std::size_t made_ = 0;                  // guarded by mutex_
  std::vector<std::unique_ptr<T>> free_;  // guarded by mutex_
};

}  // namespace chunkio::base
