/// The one door to libhdf5.
///
/// libhdf5 has one global state: builds with thread safety serialise all calls, others allow no
/// concurrency at all. So every call of this library, closing an id included, is made while a Guard
/// is held. While it is held, libhdf5 prints nothing and loads no plugins; both settings are put
/// back afterwards, since the program around us may use libhdf5 itself.
#pragma once

#include <mutex>
#include <string>

namespace chunkio::h5 {

struct LibraryNumber {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;

  /// "1.10.8".
  [[nodiscard]] std::string text() const;
};

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
  /// Of the libhdf5 in use. \throws Error as lock().
  static LibraryNumber version();
};

}  // namespace chunkio::h5
