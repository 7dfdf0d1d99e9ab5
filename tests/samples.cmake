# The trainers with LibTorch, and what of them needs none.
find_package(nlohmann_json REQUIRED)

if(TARGET chunkio_trainer_report)
  chunkio_add_unit_tests(
    trainer_test
    SOURCES unit/torch/epoch_report_test.cpp unit/torch/gpu_utilization_test.cpp unit/torch/options_test.cpp
    LIBRARIES chunkio_trainer_report nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})

  # NVML as a test wants it: whole, and without one function after the other.
  set(nvml_folder ${CMAKE_CURRENT_BINARY_DIR}/fake_nvml)
  target_compile_definitions(trainer_test PRIVATE CHUNKIO_FAKE_NVML_DIR="${nvml_folder}")
  foreach(lacking "" nvmlInit_v2 nvmlShutdown nvmlDeviceGetHandleByPciBusId_v2 nvmlDeviceGetUtilizationRates)
    if(lacking)
      set(kind without_${lacking})
    else()
      set(kind complete)
    endif()
    # Shared, not a module: the loader knows what is loaded by its SONAME, which has the version 1.
    add_library(fake_nvml_${kind} SHARED programs/fake_nvml.cpp)
    set_target_properties(
      fake_nvml_${kind} PROPERTIES OUTPUT_NAME nvidia-ml VERSION 1 SOVERSION 1
                                   LIBRARY_OUTPUT_DIRECTORY ${nvml_folder}/${kind})
    target_compile_features(fake_nvml_${kind} PRIVATE cxx_std_20)
    target_include_directories(fake_nvml_${kind} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(fake_nvml_${kind} PRIVATE chunkio_warnings)
    if(lacking)
      target_compile_definitions(fake_nvml_${kind} PRIVATE ${lacking}=${lacking}_of_another_time)
    endif()
    add_dependencies(trainer_test fake_nvml_${kind})
  endforeach()
endif()

get_property(no_trainers GLOBAL PROPERTY CHUNKIO_NO_TRAINERS)
if(TARGET chunkio-train-cifar AND TARGET h5pack AND NOT CHUNKIO_SANITIZE)
  add_test(NAME Samples.TorchTrainersLearn
           COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/torch_train_test.py
                   $<TARGET_FILE:chunkio-make-pictures> $<TARGET_FILE:h5pack>
                   $<TARGET_FILE:chunkio-train-cifar> $<TARGET_FILE:chunkio-train-celeba>
                   ${PROJECT_SOURCE_DIR}/bench/accuracy.py)
  set_tests_properties(
    Samples.TorchTrainersLearn
    PROPERTIES LABELS medium TIMEOUT 600 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
               ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;${opencv_environment}")
elseif(no_trainers)
  chunkio_add_skipped_test(Samples.TorchTrainersLearn "${no_trainers}; the trainers need 2.4 or newer, see README.md")
elseif(CHUNKIO_SANITIZE)
  # They misunderstand its threads and what it keeps until the end.
  chunkio_add_skipped_test(Samples.TorchTrainersLearn "LibTorch is not built with sanitizers")
else()
  chunkio_add_skipped_test(Samples.TorchTrainersLearn "CHUNKIO_BUILD_SAMPLES or CHUNKIO_BUILD_TOOLS is off")
endif()
