// Boost.JSON is header-only once this file, and no other, includes its sources.
#include <boost/json/src.hpp>
