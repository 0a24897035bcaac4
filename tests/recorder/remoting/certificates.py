"""Certificates of a test's own authority."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A CA that signs certificates into a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.ca = str(folder / f"{name}.pem")
        self._write(Path(self.ca), self._certificate(self.name, self.key, None))

    def signed(self, name: str, address: str | None = None, password: str | None = None) -> tuple[str, str]:
        """A certificate and its key; ``address`` is the IP that it is for."""
        key = ec.generate_private_key(ec.SECP256R1())
        cert = self.folder / f"{name}.pem"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._write(cert, self._certificate(subject, key, address))
        secret = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        path = self.folder / f"{name}.key"
        path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret))
        return str(cert), str(path)

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, address: str | None):
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=subject == self.name, path_length=None), critical=True)
        )
        if address is not None:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
            made = made.add_extension(names, critical=False)
        return made.sign(self.key, hashes.SHA256())

    def _write(self, path: Path, certificate: x509.Certificate) -> None:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
