package dev.penstock.runtime.evaluation;

import java.util.Map;

/**
 * The figures of a task, of one file or of all.
 *
 * @param measures by name, in the order in which they are told: counts as {@code Long}, all else as
 *     {@code Double}
 */
public record TaskResult(String file, Map<String, Number> measures) {}
