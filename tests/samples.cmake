# The trainers with LibTorch, and what of them needs none.
find_package(nlohmann_json REQUIRED)

if(TARGET chunkio_trainer_report)
  chunkio_add_unit_tests(
    trainer_test
    SOURCES unit/torch/epoch_report_test.cpp unit/torch/gpu_utilization_test.cpp unit/torch/options_test.cpp
    LIBRARIES chunkio_trainer_report nlohmann_json::nlohmann_json)
endif()

get_property(no_trainers GLOBAL PROPERTY CHUNKIO_NO_TRAINERS)
if(TARGET chunkio-train-cifar AND TARGET h5pack AND NOT CHUNKIO_SANITIZE)
  add_test(NAME Samples.TorchTrainersLearn
           COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/torch_train_test.py
                   $<TARGET_FILE:chunkio-make-pictures> $<TARGET_FILE:h5pack>
                   $<TARGET_FILE:chunkio-train-cifar> $<TARGET_FILE:chunkio-train-celeba>
                   $<TARGET_FILE:chunkio-train-vae> ${PROJECT_SOURCE_DIR}/bench/accuracy.py)
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
