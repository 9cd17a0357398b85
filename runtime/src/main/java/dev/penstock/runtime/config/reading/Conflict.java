package dev.penstock.runtime.config.reading;

import java.util.List;

/**
 * Values that are each allowed and do not fit together.
 *
 * @param keys paths of the keys involved; the problem is reported at the first
 */
public record Conflict(List<String> keys, String expected, String got, String advice) {}
