/// The one door to libhdf5.
///
/// libhdf5 has one global state: builds with thread safety serialise all calls, others allow no
/// concurrency at all. So every call of this library, closing an id included, is made while a Guard
/// is held. While it is held, libhdf5 prints nothing and loads no plugins; both settings are put
/// back afterwards, since the program around us may use libhdf5 itself.
#pragma once

#include <mutex>

namespace chunkio::h5 {

class Library {
 public:
  /// Holds the process-wide lock; may be nested in one thread.
  class [[nodiscard]] Guard {
   public:
    /// \throws Error unsupported in a child forked while another thread held the lock, after a few
    ///         seconds.
    Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();

   private:
    std::unique_lock<std::recursive_mutex> lock_;
  };

  static Guard lock() { return Guard(); }
};

}  // namespace chunkio::h5
