/**
 * Every order in which a small run's messages, deaths and losses can happen, with the real
 * coordinator and imagined ranks.
 */
@NullMarked
package dev.penstock.actors.exploration;

import org.jspecify.annotations.NullMarked;
