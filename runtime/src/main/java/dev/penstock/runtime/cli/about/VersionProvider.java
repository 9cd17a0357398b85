package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.launch.BuiltVersion;
import picocli.CommandLine.IVersionProvider;

/** What {@code --version} says. */
public final class VersionProvider implements IVersionProvider {
    @Override
    public String[] getVersion() {
        return new String[] {"penstock " + BuiltVersion.text()};
    }
}
