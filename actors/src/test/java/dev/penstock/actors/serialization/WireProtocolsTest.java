package dev.penstock.actors.serialization;

import static org.assertj.core.api.Assertions.assertThat;

import com.typesafe.config.ConfigFactory;
import java.io.IOException;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The protocols listed in the configuration beside the classes of this module. */
class WireProtocolsTest {
    @Test
    void everyWireMessageOfThisModuleMayTravel() throws Exception {
        KryoRegistry registry =
                KryoRegistry.of(
                        KryoRegistry.load(
                                ConfigFactory.load().getStringList("penstock.wire.protocols")),
                        () -> {
                            throw new AssertionError("no reference travels here");
                        });

        assertThat(registry.types()).containsAll(wireRecords());
    }

    private static List<Class<?>> wireRecords() throws IOException, URISyntaxException {
        Path classes =
                Path.of(
                        WireMessage.class
                                .getProtectionDomain()
                                .getCodeSource()
                                .getLocation()
                                .toURI());
        try (Stream<Path> files = Files.walk(classes)) {
            return files.map(file -> classes.relativize(file).toString())
                    .filter(name -> name.endsWith(".class") && !name.contains("-info"))
                    .<Class<?>>map(WireProtocolsTest::load)
                    .filter(WireMessage.class::isAssignableFrom)
                    .filter(Class::isRecord)
                    .filter(type -> !Modifier.isPrivate(type.getModifiers()))
                    .toList();
        }
    }

    private static Class<?> load(String file) {
        String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
        try {
            return Class.forName(name, false, WireMessage.class.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new AssertionError(e);
        }
    }
}
