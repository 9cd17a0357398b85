package dev.penstock.runtime.cli;

import dev.penstock.runtime.launch.BuiltVersion;
import picocli.CommandLine.IVersionProvider;

/** What {@code --version} says. */
final class VersionProvider implements IVersionProvider {
    @Override
    public String[] getVersion() {
        return new String[] {"penstock " + BuiltVersion.text()};
    }
}
