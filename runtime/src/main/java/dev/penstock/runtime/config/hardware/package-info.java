/** Descriptions of hardware to plan for: nodes, devices, links. */
@NullMarked
package dev.penstock.runtime.config.hardware;

import org.jspecify.annotations.NullMarked;
