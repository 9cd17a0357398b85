package dev.penstock.actors.simulation;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.slf4j.LoggerFactory;

/** In runs that are imagined by the thousand, recoveries are no news: nothing of ours is logged. */
public final class QuietLog implements BeforeAllCallback, AfterAllCallback {
    private static final Logger LOG = (Logger) LoggerFactory.getLogger("dev.penstock.actors");

    @Override
    public void beforeAll(ExtensionContext context) {
        LOG.setLevel(Level.OFF);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        LOG.setLevel(null);
    }
}
