/** What a configuration says of links: bandwidths, lost frames, a link of its own. */
@NullMarked
package dev.penstock.runtime.config.links;

import org.jspecify.annotations.NullMarked;
