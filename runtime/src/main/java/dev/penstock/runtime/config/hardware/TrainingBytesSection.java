package dev.penstock.runtime.config.hardware;

import dev.penstock.runtime.config.reading.Setting;

/**
 * Section {@code bytes} of a cluster file: what training holds.
 *
 * @param parameter bytes of a parameter in use
 * @param gradient bytes of its gradient
 * @param optimizer bytes of moments, and of master weights beside the parameters
 * @param activation bytes of an activation
 */
public record TrainingBytesSection(
        @Setting(is = "2", range = "[1, 16]", doc = "bytes of a parameter in use") int parameter,
        @Setting(is = "2", range = "[1, 16]", doc = "bytes of a parameter's gradient") int gradient,
        @Setting(
                        is = "12",
                        range = "[0, 64]",
                        doc = "bytes of a parameter's moments and master weight")
                int optimizer,
        @Setting(is = "2", range = "[1, 16]", doc = "bytes of an activation") int activation) {}
