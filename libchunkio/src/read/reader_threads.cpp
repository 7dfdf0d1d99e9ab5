#include "read/reader_threads.hpp"

#include <string>
#include <system_error>

#include <chunkio/error.hpp>

namespace chunkio::read {

void ReaderThreads::start(std::int64_t count, const std::function<void(std::stop_token)>& work) {
  try {
    threads_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) threads_.emplace_back(work);
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::out_of_resources, std::string("cannot start a reader thread: ") +
                                                 error.what() +
                                                 "; lower num_threads or raise the process limit");
  }
}

void ReaderThreads::stop() noexcept {
  {
    // Under the mutex, so that no worker can miss it between its check and its wait.
    const std::lock_guard lock(ring_.mutex());
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  ring_.work_available().notify_all();
  threads_.clear();  // joins
}

}  // namespace chunkio::read
