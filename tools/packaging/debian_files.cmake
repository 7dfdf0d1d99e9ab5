# Run by CPack before it makes a package: what Debian asks of each, beside what is installed anywhere.
set(root ${CMAKE_CURRENT_LIST_DIR}/../..)
string(TIMESTAMP now "%s" UTC)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  set(now $ENV{SOURCE_DATE_EPOCH})
endif()
execute_process(COMMAND date --utc --rfc-email --date=@${now} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
                        COMMAND_ERROR_IS_FATAL ANY)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(prefix ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr)
  if(NOT EXISTS ${prefix})
    continue()
  endif()
  set(doc ${prefix}/share/doc/${package})
  file(READ ${root}/LICENSE license)
  string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
  string(REGEX REPLACE "\n+$" "" license "${license}")
  string(REPLACE "\n" "\n " license "${license}")
  file(WRITE ${doc}/copyright
       "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n"
       "Copyright: 2026 The chunkio authors\nLicense: Expat\n ${license}\n")
  file(WRITE ${doc}/changelog.Debian
       "chunkio (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * See changelog.gz.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(COPY_FILE ${root}/CHANGELOG.md ${doc}/changelog)
  file(GLOB texts ${doc}/changelog* ${prefix}/share/man/man1/*.1)
  execute_process(COMMAND gzip --best --no-name --force ${texts} COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE all LIST_DIRECTORIES ON ${prefix}/share/doc/* ${prefix}/share/man/*)
  foreach(path IN LISTS all)
    if(NOT IS_DIRECTORY ${path})
      file(CHMOD ${path} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    endif()
  endforeach()
endforeach()
