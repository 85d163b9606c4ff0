/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/machine/cpu_plan.h"

TEST(properties_of_a_gpu_are_read) {
    struct kfd_properties properties = kfd_properties_parse(slice_from_string(
        "cpu_cores_count 0\nsimd_count 440\nmem_banks_count 1\nvendor_id 4098\n"
        "location_id 49920\ndomain 1\ndrm_render_minor 129\nunique_id 18446744073709551615\n"));
    assert_int_equal(properties.simd_count, 440);
    assert_int_equal(properties.location_id, 49920);
    assert_int_equal(properties.domain, 1);
    assert_int_equal(properties.drm_render_minor, 129);
    assert_true(properties.unique_id == UINT64_MAX);
}

TEST(other_lines_are_passed_over) {
    static const char *const texts[] = {"", "\n\n", "simd_count", "simd_count ", "simd_count x\n",
        "simd_count -1", "simd_count 18446744073709551616", "simd_count  1", "xsimd_count 1",
        "simd_count_more 1", "simd_count 1 "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kfd_properties properties = kfd_properties_parse(slice_from_string(texts[i]));
        assert_int_equal(properties.simd_count, 0);
    }
}
