/// How libjpeg's errors come back: with a jump, since it must not return from them.
///
/// A function that calls libjpeg calls setjmp(errors.jump) first, and holds nothing that would need
/// a destructor.
#pragma once

// jpeglib.h uses FILE and size_t without declaring them.
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

namespace h5pack {

struct JpegErrors {
  jpeg_error_mgr base{};  // First: libjpeg hands back a pointer to it.
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};

  /// For the member `err` of libjpeg's structures.
  jpeg_error_mgr* set_up() noexcept {
    jpeg_std_error(&base);
    base.error_exit = leave;
    base.emit_message = on_message;
    return &base;
  }

  [[noreturn]] static void leave(j_common_ptr info) {
    auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
    errors->base.format_message(info, errors->message.data());
    std::longjmp(errors->jump, 1);
  }
  static void on_message(j_common_ptr info, int level) {
    // A warning: data are damaged, and what follows would be guessed.
    if (level < 0) leave(info);
  }
};

}  // namespace h5pack
