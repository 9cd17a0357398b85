package dev.penstock.runtime.config.hardware;

import com.typesafe.config.ConfigList;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOrigin;
import com.typesafe.config.ConfigValue;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.NearWord;
import dev.penstock.runtime.config.reading.Problems;
import dev.penstock.runtime.config.run.SectionFile;
import dev.penstock.runtime.config.run.SectionReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Reads a cluster file (HOCON), or says everything that is wrong with it. */
public final class HardwareLoader {
    private static final List<String> SECTIONS = List.of("name", "nodes", "network", "bytes");

    private final SectionFile file;
    private final Problems problems;
    private final SectionReader sections;

    private HardwareLoader(Path path) {
        this.file = SectionFile.of(path);
        this.problems = file.problems();
        this.sections = file.sections();
    }

    /**
     * Reads a file.
     *
     * @throws ConfigException with all problems at once, each with its line and key
     */
    public static HardwareConfig load(Path file) {
        return new HardwareLoader(file).read();
    }

    private HardwareConfig read() {
        ConfigObject written = file.read(List.of());
        written.forEach(this::known);
        List<NodesSection> nodes = nodes(written);
        Optional<NetworkSection> network = section(NetworkSection.class, "network", written);
        Optional<TrainingBytesSection> bytes =
                section(TrainingBytesSection.class, "bytes", written);
        String name = name(written);
        file.stopIfWrong();
        return new HardwareConfig(name, nodes, network.orElseThrow(), bytes.orElseThrow());
    }

    private void known(String key, ConfigValue value) {
        if (!SECTIONS.contains(key)) {
            problems.at(
                    value.origin(),
                    key,
                    "one of " + String.join(", ", SECTIONS),
                    "an unknown key",
                    NearWord.among(SECTIONS, key)
                            .map(name -> "did you mean " + name + "?")
                            .orElse("remove it"));
        }
    }

    private String name(ConfigObject written) {
        ConfigValue value = written.get("name");
        return value == null
                ? String.valueOf(file.places().mainFile().getFileName())
                        .replaceFirst("\\.[^.]+$", "")
                : String.valueOf(value.unwrapped());
    }

    private <T extends Record> Optional<T> section(
            Class<T> type, String name, ConfigObject written) {
        ConfigValue value = written.get(name);
        if (value == null) {
            return sections.read(type, name, Optional.empty(), written.origin());
        }
        return section(type, name, value);
    }

    private <T extends Record> Optional<T> section(Class<T> type, String path, ConfigValue value) {
        if (value instanceof ConfigObject object) {
            return sections.read(type, path, Optional.of(object), value.origin());
        }
        problems.at(value, path, "a section { .. }", "put its keys in braces");
        return Optional.empty();
    }

    private List<NodesSection> nodes(ConfigObject written) {
        ConfigValue value = written.get("nodes");
        if (!(value instanceof ConfigList list) || list.isEmpty()) {
            String example = "write nodes = [ { name = laptop, memory = 16 GiB, .. } ]";
            if (value == null) {
                problems.inFile("nodes", "a list of nodes", "nothing", example);
            } else {
                problems.at(value, "nodes", "a list of nodes", example);
            }
            return List.of();
        }
        var nodes = new ArrayList<NodesSection>();
        for (int i = 0; i < list.size(); i++) {
            String path = "nodes[%d]".formatted(i);
            ConfigValue entry = list.get(i);
            section(NodesSection.class, path, entry)
                    .filter(section -> leavesMemory(section, path, entry.origin()))
                    .ifPresent(nodes::add);
        }
        return nodes;
    }

    private boolean leavesMemory(NodesSection nodes, String path, ConfigOrigin origin) {
        boolean leaves = nodes.reserved().compareTo(nodes.memory()) < 0;
        if (!leaves) {
            problems.at(
                    origin,
                    path + ".reserved",
                    "less than the memory of " + nodes.memory(),
                    nodes.reserved().toString(),
                    "reserve less");
        }
        return leaves;
    }
}
