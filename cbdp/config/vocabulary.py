"""What people call the columns of trips, taps and stops: words by meaning and by language, and the words of a column's name.

English, Spanish, Portuguese, French, German, Italian and Indonesian. Words are in small letters and without accents, as `words_of` gives them. To teach
another word or language is to write it here; tests/app/guessing/test_vocabulary.py has header lines of public data sets with what they mean.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache


def _words(**languages: str) -> frozenset[str]:
    return frozenset(word for words in languages.values() for word in words.split())


# The two ends of a trip

START = _words(
    en="origin orig o from start started begin source pickup pu board boarding entry departure checkout unlock",
    es="origen inicio inicial partida retiro subida ascenso desde entrada embarque",
    pt="origem inicio partida embarque entrada retirada",
    fr="origine depart debut montee entree",
    de="von start beginn abfahrt quelle einstieg ausleihe",
    it="origine partenza inizio salita entrata prelievo",
    id="asal awal mulai naik berangkat keberangkatan masuk",
)
END = _words(
    en="destination dest d to end ended finish target dropoff do alight alighting exit arrival return lock",
    es="destino fin final llegada arribo bajada descenso hasta desembarque",
    pt="destino fim final chegada descida desembarque devolucao",
    fr="destination arrivee fin descente sortie",
    de="nach ziel ende ankunft ausstieg bis ruckgabe",
    it="destinazione arrivo fine discesa uscita",
    id="tujuan akhir selesai turun tiba kedatangan keluar",
)
# of these, words that mean the place and never the moment
ORIGIN_OR_DESTINATION = _words(
    en="origin orig destination dest",
    es="origen destino",
    pt="origem",
    fr="origine",
    de="quelle ziel",
    it="destinazione",
    id="asal tujuan",
)
LEAVING = _words(
    es="salida", pt="saida"
)  # leaving a place: the start of a trip, but where a gate is entered, its end
ENTERING = _words(
    en="entry", es="entrada ingreso", pt="entrada", fr="entree", it="entrata ingresso", id="masuk"
)
# where a card was tapped on and off: with a word for a place or a time only, for alone they are often numbers of riders
TAPPED_ON, TAPPED_OFF = frozenset({"on", "in"}), frozenset({"off", "out"})

# Places

SPOT = _words(
    en="stop stops station stations stn location loc terminal place site gate dock hub",
    es="estacion parada paradero cicloestacion cicloestacao terminal ubicacion lugar",
    pt="estacao ponto parada terminal local",
    fr="station arret gare borne lieu",
    de="station haltestelle bahnhof hst halt ort",
    it="stazione fermata posto luogo",
    id="halte stasiun lokasi pemberhentian",
)
ZONE = _words(
    en="zone district borough tract area region county taz",
    es="zona distrito barrio colonia comuna municipio alcaldia delegacion",
    pt="zona bairro distrito municipio",
    fr="zone quartier commune arrondissement secteur",
    de="zone bezirk stadtteil ortsteil gemeinde tarifzone wabe",
    it="zona quartiere comune municipio",
    id="zona kecamatan kelurahan kota wilayah",
)
NAME = _words(
    en="name names description",
    es="nombre",
    pt="nome",
    fr="nom libelle",
    de="bezeichnung",
    it="denominazione",
    id="nama",
)
LATITUDE = _words(
    en="lat latitude", es="latitud", fr="latitude", de="breite breitengrad", it="latitudine", id="lintang"
)
LONGITUDE = _words(
    en="lon lng long longitude",
    es="longitud",
    de="lange langengrad laenge laengengrad",
    it="longitudine",
    id="bujur",
)
COORDINATE = LATITUDE | LONGITUDE | {"x", "y"}

# Times

MOMENT = _words(
    en="time datetime timestamp tstamp at ts when moment period",
    es="momento instante fechahora horario",
    pt="datahora instante momento horario",
    fr="horodatage horodate instant moment",
    de="zeit uhrzeit zeitpunkt zeitstempel",
    it="orario istante momento",
    id="waktu",
)
TIME_OF_DAY = _words(
    en="time", es="horario", pt="horario", de="zeit uhrzeit", it="orario", id="waktu"
)  # without a date, where none is named
EPOCH = frozenset({"epoch", "unix", "unixtime", "posix"})
HOUR = _words(en="hour hr hours", es="hora", fr="heure", de="stunde", it="ora", id="jam")
DATE = _words(
    en="date day dates",
    es="fecha dia",
    pt="data dia",
    fr="date jour",
    de="datum betriebstag",
    it="data giorno",
    id="tanggal tgl hari",
)
THOUSANDTHS = frozenset({"ms", "millis", "milliseconds", "msec"})
TRIP = _words(
    en="trip trips journey ride rental", es="viaje recorrido", pt="viagem", fr="trajet voyage deplacement course",
    de="fahrt reise", it="viaggio corsa", id="perjalanan",
)  # fmt: skip

# Persons

PERSON = _words(
    en="person user rider card customer member passenger account traveller traveler token media medium smartcard cardholder subscriber client "
    "pan patron farecard travelcard participant respondent cyclist commuter badgeholder passholder",
    es="persona usuario usuaria pasajero pasajera viajero viajera tarjeta cliente abonado abonada socio ciclista titular tarjetahabiente beneficiario beneficiaria",
    pt="pessoa usuario utilizador utente passageiro cartao cliente assinante titular portador beneficiario",
    fr="personne usager utilisateur voyageur carte abonne client porteur adherent titulaire passager",
    de="person nutzer benutzer kunde kunden fahrgast karte karten chipkarte abonnent mitglied teilnehmer passagier inhaber reisender reisende",
    it="persona utente passeggero viaggiatore tessera carta cliente abbonato titolare",
    id="pengguna penumpang kartu pelanggan anggota orang pemakai pemegang pemilik",
)
# what may tell people apart, and may be a thing: said loudly, taken for a person by nobody but the curator
MAYBE_PERSON = _words(
    en="device phone mobile cell imei imsi msisdn mac email ticket pass permit badge household profile wallet medium ssn loyalty student scholar pupil employee",
    es="dispositivo telefono celular boleto billete abono pase dni rut curp cedula cuenta correo estudiante empleado",
    pt="dispositivo telefone celular bilhete passe cpf conta estudante aluno",
    fr="appareil telephone billet titre support abonnement compte etudiant eleve",
    de="gerat handy telefon ticket fahrschein abo ausweis konto schuler student",
    it="dispositivo telefono biglietto titolo abbonamento conto studente matricola",
    id="perangkat telepon ponsel tiket nik akun siswa pelajar",
)
BRANDS = frozenset(
    "opal oyster myki clipper sube navigo presto orca ventra charlie bip octopus suica ezlink troika viva mobib tullave compass hop".split()  # noqa: SIM905
)  # of cards
ID = BRANDS | _words(
    en="id ids hash hashed key number num nr no n uuid guid serial code ref identifier pseudonym anonymous anonymised anonymized anon masked encrypted "
    "fare transit travel payment pay app emv smart chip card rfid uid",
    es="numero nro num clave codigo cod identificador folio serie anonimo anonima",
    pt="numero codigo cod identificador chave anonimo anonima",
    fr="numero num identifiant cle code puce anonymise anonyme",
    de="nummer kennung schlussel chip",
    it="numero codice cod identificativo seriale anonimo",
    id="nomor kode",
)
# beside a word for a person, these make it a kind of person, a thing about persons, a thing that serves them, or a number of them
NO_PERSON = _words(
    en="type kind category class group gender sex age birth birthdate year casual status plan subscription segment name bank brand product "
    "count counts total sum reader validator gate vehicle bike bus driver operator vendor capacity discount balance expiry language zip postcode score "
    "rating level role concession amount price value",
    es="tipo categoria genero sexo edad nacimiento ano estado plan nombre cantidad lector validador vehiculo capacidad saldo tarifa monto",
    pt="tipo categoria genero sexo idade nascimento ano estado nome quantidade leitor validador veiculo capacidade saldo tarifa valor",
    fr="type categorie genre sexe age naissance annee statut formule nom nombre valideur vehicule capacite tarif solde profil",
    de="typ art kategorie geschlecht alter geburt geburtsjahr status tarif anzahl leser fahrzeug kapazitat guthaben",
    it="tipo categoria genere sesso eta nascita anno stato nome numerosita lettore veicolo capacita saldo tariffa",
    id="jenis tipe kategori kelamin umur usia lahir tahun status nama jumlah kapasitas saldo bank",
)
LITTLE = _words(
    en="the of a an",
    es="de del la el los las",
    pt="de do da dos das o a",
    fr="de du des la le les l d",
    de="der die das des dem",
    it="di del della dello la il",
    id="di",
)  # adds nothing to a name

# Numbers of trips

MANY = _words(
    en="count counts trips journeys rides ridership flow volume demand boardings alightings ons offs entries exits taps validations",
    es="viajes validaciones subidas bajadas cantidad",
    pt="viagens validacoes embarques desembarques quantidade",
    fr="trajets voyages deplacements validations montees descentes",
    de="anzahl fahrten einsteiger aussteiger",
    it="viaggi salite discese validazioni",
    id="jumlah",
)
ONE = frozenset(
    {"trip", "journey", "ride", "od", "viaje", "viagem", "trajet", "fahrt", "viaggio", "perjalanan"}
)
FILLER = LITTLE | {"n", "num", "no", "nb", "number", "total", "sum", "all"}
# words that mean it only where rows are sums: a taxi ride has passengers, too
SUMS = _words(
    en="passengers passenger pax riders rider travellers persons", es="pasajeros viajeros", pt="passageiros", fr="voyageurs",
    de="fahrgaste fahrgaeste", it="passeggeri viaggiatori", id="penumpang",
)  # fmt: skip

# What is neither a place nor a time

NEVER = _words(
    en="duration created updated type kind count of week weekday capacity amount month year",
    es="duracion tipo capacidad monto mes ano semana nacimiento",
    pt="duracao tipo capacidade valor mes ano semana nascimento",
    fr="duree type capacite montant mois annee semaine naissance",
    de="dauer typ kapazitat betrag monat jahr woche geburt",
    it="durata tipo capacita importo mese anno settimana nascita",
    id="durasi jenis kapasitas bulan tahun minggu lahir",
)

# Taps

TAP = _words(
    en="tap action onoff inout",
    es="accion movimiento",
    pt="acao movimento",
    fr="mouvement",
    de="aktion vorgang",
    it="azione movimento",
    id="aksi",
)
TAP_WITH_CARDS = _words(
    en="direction io event transaction type kind validation", es="evento transaccion tipo validacion sentido",
    pt="evento transacao tipo validacao sentido", fr="evenement transaction type validation sens",
    de="richtung ereignis typ art", it="evento transazione tipo validazione verso", id="jenis transaksi arah",
)  # fmt: skip
TAP_PAIRS = tuple(
    map(
        frozenset,
        (
            ("on", "off"), ("in", "out"), ("entry", "exit"), ("enter", "exit"), ("board", "alight"), ("entrada", "salida"), ("subida", "bajada"),
            ("ascenso", "descenso"), ("entrada", "saida"), ("embarque", "desembarque"), ("entree", "sortie"), ("montee", "descente"),
            ("einstieg", "ausstieg"), ("ein", "aus"), ("entrata", "uscita"), ("salita", "discesa"), ("masuk", "keluar"), ("naik", "turun"),
        ),
    )
)  # fmt: skip
# how a tap is written in a row, in small letters
ON_WORDS = tuple(
    "on in enter entry entrance board boarding start begin entrada ingreso subida ascenso abordaje embarque entree entrée montee montée einstieg eintritt entrata ingresso salita masuk naik".split()  # noqa: SIM905
)
OFF_WORDS = tuple(
    "off out exit leave alight alighting end salida bajada descenso desembarque saida saída descida sortie descente ausstieg austritt uscita discesa keluar turun".split()  # noqa: SIM905
)

_PARTS = frozenset().union(
    START,
    END,
    SPOT,
    ZONE,
    NAME,
    LATITUDE,
    LONGITUDE,
    MOMENT,
    HOUR,
    DATE,
    PERSON,
    MAYBE_PERSON,
    ID,
    NEVER,
    TAP,
) - {"o", "d", "n", "at", "to", "do", "pu", "ts"}
_KNOWN = _PARTS.union(
    MANY, SUMS, TRIP, NO_PERSON, TAP_WITH_CARDS, LEAVING, ENTERING, EPOCH, {"weekday", "today"}
)


def words_of(name: str) -> list[str]:
    """The words of a column's name, in small letters and without accents; those that are written as one are told apart.

    >>> words_of("startStation_ID"), words_of("PULocationID"), words_of("Año_de_nacimiento"), words_of("kartennummer")
    (['start', 'station', 'id'], ['pu', 'location', 'id'], ['ano', 'de', 'nacimiento'], ['karten', 'nummer'])
    """
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", name.replace("ß", "ss")) if not unicodedata.combining(c)
    )
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", plain)]
    return [part for word in words for part in _split_compound(word)]


@cache
def _split_compound(word: str) -> tuple[str, ...]:
    """Two or three known words that are written as one, one of them of four letters or more; otherwise the word itself."""
    if word in _KNOWN or len(word) < 6:
        return (word,)
    for cut in range(len(word) - 2, 1, -1):
        first, rest = word[:cut], word[cut:]
        if first not in _PARTS:
            continue
        others = (rest,) if rest in _PARTS else _split_compound(rest)
        if all(other in _PARTS for other in others) and max(map(len, (first, *others))) >= 4:
            return (first, *others)
    return (word,)


def score(name: str, *tables: Mapping[str, int]) -> int:
    """The points of a name: those of its different words in all tables."""
    words = set(words_of(name))
    return sum(table.get(word, 0) for table in tables for word in words)


def points(words: Iterable[str], each: int) -> dict[str, int]:
    """A table in which each of these words has so many points."""
    return dict.fromkeys(words, each)


def names_person(name: str) -> int:
    """How surely a name is that of a person's id: it is called so and nothing else. `member_casual` or `user_type` are kinds of persons.

    >>> names_person("payCardID") > 0, names_person("Usuario_Id") > 0, names_person("Genero"), names_person("user_type")
    (True, True, 0, 0)
    """
    words = set(words_of(name)) - LITTLE
    persons = words & (PERSON | {"device"})
    if not persons or words - PERSON - ID - {"device"} or words & NO_PERSON:
        return 0
    return sum(2 if word == "device" else 4 for word in persons) + bool(words & {"id", "hash", "uuid"})


def may_name_person(name: str) -> bool:
    """Whether a name may be that of a person's id, or of something that belongs to one person.

    >>> [may_name_person(n) for n in ("ticket_serial", "card_ref_new", "userHomeStop", "Genero", "reader_device", "station_capacity")]
    [True, True, False, False, False, False]
    """
    words = set(words_of(name)) - LITTLE
    things = NO_PERSON | NEVER | SPOT | ZONE | COORDINATE | MOMENT | HOUR | DATE | MANY | TRIP
    return bool(words & (PERSON | MAYBE_PERSON | BRANDS)) and not words & things
