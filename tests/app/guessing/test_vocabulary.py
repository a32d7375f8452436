"""Header lines as public data sets and fare systems have them, in seven languages, with what `cbdp init` must take their columns for.

Column names are facts about these data sets; no row of any of them is here.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbdp.app import cli
from cbdp.config.guessing import guess_columns
from cbdp.config.vocabulary import may_name_person, names_person, words_of
from cbdp.counting import Schema

# what it is, its first line, and role=column of what must be recognised; "-person": nothing may be taken for a person
HEADERS = """
TransJakarta | transID,payCardID,payCardBank,payCardName,payCardSex,payCardBirthDate,corridorID,corridorName,direction,tapInStops,tapInStopsName,tapInStopsLat,tapInStopsLon,stopStartSeq,tapInTime,tapOutStops,tapOutStopsName,tapOutStopsLat,tapOutStopsLon,stopEndSeq,tapOutTime,payAmount | origin=tapInStops destination=tapOutStops time=tapInTime person=payCardID
MiBici | Viaje_Id,Usuario_Id,Genero,Año_de_nacimiento,Inicio_del_viaje,Fin_del_viaje,Origen_Id,Destino_Id | origin=Origen_Id destination=Destino_Id time=Inicio_del_viaje person=Usuario_Id
NYC TLC yellow | VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,RatecodeID,PULocationID,DOLocationID,payment_type,fare_amount | origin=PULocationID destination=DOLocationID time=tpep_pickup_datetime -person
NYC TLC high volume | hvfhs_license_num,dispatching_base_num,pickup_datetime,dropoff_datetime,PULocationID,DOLocationID,trip_miles,trip_time | origin=PULocationID destination=DOLocationID time=pickup_datetime -person
Citi Bike 2015 | tripduration,starttime,stoptime,start station id,start station name,start station latitude,start station longitude,end station id,end station name,end station latitude,end station longitude,bikeid,usertype,birth year,gender | origin=start station id destination=end station id time=starttime -person
Citi Bike 2023 | ride_id,rideable_type,started_at,ended_at,start_station_name,start_station_id,end_station_name,end_station_id,start_lat,start_lng,end_lat,end_lng,member_casual | origin=start_station_id destination=end_station_id time=started_at -person
Bay Area Bike Share | Trip ID,Duration,Start Date,Start Station,Start Terminal,End Date,End Station,End Terminal,Bike #,Subscriber Type,Zip Code | origin=Start Terminal destination=End Terminal time=Start Date -person
Bay Wheels 2018 | duration_sec,start_time,end_time,start_station_id,start_station_name,end_station_id,end_station_name,bike_id,user_type,member_birth_year,member_gender | origin=start_station_id destination=end_station_id time=start_time -person
Divvy 2013 | trip_id,starttime,stoptime,bikeid,tripduration,from_station_id,from_station_name,to_station_id,to_station_name,usertype,gender,birthday | origin=from_station_id destination=to_station_id time=starttime -person
Ecobici | Genero_Usuario,Edad_Usuario,Bici,Ciclo_Estacion_Retiro,Fecha_Retiro,Hora_Retiro,Ciclo_Estacion_Arribo,Fecha_Arribo,Hora_Arribo | origin=Ciclo_Estacion_Retiro destination=Ciclo_Estacion_Arribo time=Hora_Retiro day=Fecha_Retiro -person
Buenos Aires Ecobici | id_recorrido,duracion_recorrido,fecha_origen_recorrido,id_estacion_origen,nombre_estacion_origen,fecha_destino_recorrido,id_estacion_destino,nombre_estacion_destino,id_usuario,modelo_bicicleta,genero | origin=id_estacion_origen destination=id_estacion_destino time=fecha_origen_recorrido person=id_usuario
BiciMAD | idBike,fleet,trip_minutes,geolocation_unlock,address_unlock,unlock_date,locktype,unlocktype,geolocation_lock,address_lock,lock_date,station_unlock,dock_unlock,unlock_station_name,station_lock,dock_lock,lock_station_name | origin=station_unlock destination=station_lock time=unlock_date -person
Vélo'v Lyon | id_location,station_depart,station_arrivee,date_depart,date_arrivee,id_abonne | origin=station_depart destination=station_arrivee time=date_depart person=id_abonne
Bixi 2017 | start_date,start_station_code,end_date,end_station_code,duration_sec,is_member | origin=start_station_code destination=end_station_code time=start_date -person
Bixi 2014 fr | date_debut,code_station_depart,date_fin,code_station_arrivee,duree_sec,est_membre | origin=code_station_depart destination=code_station_arrivee time=date_debut -person
SPTrans bilhete | numero_cartao,data_hora,codigo_ponto_embarque,codigo_ponto_desembarque,tipo_bilhete | origin=codigo_ponto_embarque destination=codigo_ponto_desembarque time=data_hora person=numero_cartao
Metrô entrada e saída | id_cartao,estacao_entrada,estacao_saida,hora_entrada,hora_saida,data | origin=estacao_entrada destination=estacao_saida time=hora_entrada day=data person=id_cartao
Bike Itaú | user_id,nome_estacao_retirada,estacao_retirada_id,data_retirada,estacao_devolucao_id,data_devolucao | origin=estacao_retirada_id destination=estacao_devolucao_id time=data_retirada person=user_id
Carris | id_passageiro,paragem_embarque,paragem_desembarque,data_hora_embarque | time=data_hora_embarque person=id_passageiro
Metro de Madrid | NUM_TARJETA,ESTACION_ENTRADA,ESTACION_SALIDA,FECHA_HORA_ENTRADA | origin=ESTACION_ENTRADA destination=ESTACION_SALIDA time=FECHA_HORA_ENTRADA person=NUM_TARJETA
Renfe salida y llegada | id_viajero,estacion_salida,estacion_llegada,hora_salida,fecha | origin=estacion_salida destination=estacion_llegada time=hora_salida day=fecha person=id_viajero
Transantiago bip | idtarjeta,paradero_subida,paradero_bajada,tiempo_subida,fechahora_subida | origin=paradero_subida destination=paradero_bajada time=fechahora_subida person=idtarjeta
SUBE | nro_tarjeta,fecha_hora,parada_origen,parada_destino,tipo_tarifa | origin=parada_origen destination=parada_destino time=fecha_hora person=nro_tarjeta
TransMilenio | Numero_Tarjeta,Fecha_Transaccion,Estacion_Parada,Tipo_Tarjeta | person=Numero_Tarjeta
ATM Milano | id_tessera,stazione_partenza,stazione_arrivo,data_ora_partenza | origin=stazione_partenza destination=stazione_arrivo time=data_ora_partenza person=id_tessera
Metro Roma tornelli | codice_tessera,stazione_entrata,stazione_uscita,orario_entrata,data | origin=stazione_entrata destination=stazione_uscita time=orario_entrata day=data person=codice_tessera
BikeMi | cliente_id,stazione_prelievo,stazione_restituzione,data_ora_prelievo | origin=stazione_prelievo time=data_ora_prelievo person=cliente_id
VBB | Kartennummer,Starthaltestelle,Zielhaltestelle,Startzeit,Tarif | origin=Starthaltestelle destination=Zielhaltestelle time=Startzeit person=Kartennummer
Verkehrsverbund | kunden_nr,einstieg_haltestelle,ausstieg_haltestelle,einstieg_uhrzeit,datum | origin=einstieg_haltestelle destination=ausstieg_haltestelle time=einstieg_uhrzeit day=datum person=kunden_nr
Call a Bike | BOOKING_HAL_ID,CUSTOMER_HAL_ID,VEHICLE_HAL_ID,DATE_FROM,DATE_UNTIL,START_RENTAL_ZONE,END_RENTAL_ZONE,START_RENTAL_ZONE_HAL_ID,END_RENTAL_ZONE_HAL_ID | time=DATE_FROM
Fahrgastzählung | Linie,von,nach,Stunde,Anzahl | origin=von destination=nach time=Stunde count=Anzahl -person
Île-de-France carte | id_carte,arret_montee,arret_descente,horodatage_montee | origin=arret_montee destination=arret_descente time=horodatage_montee person=id_carte
Navigo validations | numero_navigo,station_entree,station_sortie,heure_entree,jour | origin=station_entree destination=station_sortie time=heure_entree day=jour
Usagers Rennes | identifiant_usager,gare_origine,gare_destination,date_heure | origin=gare_origine destination=gare_destination time=date_heure person=identifiant_usager
KRL Commuter | nomor_kartu,stasiun_asal,stasiun_tujuan,waktu_masuk | origin=stasiun_asal destination=stasiun_tujuan time=waktu_masuk person=nomor_kartu
MRT Jakarta | id_pengguna,halte_naik,halte_turun,tanggal,jam_naik | origin=halte_naik destination=halte_turun time=jam_naik day=tanggal person=id_pengguna
Penumpang | asal,tujuan,jam,jumlah_penumpang | origin=asal destination=tujuan time=jam count=jumlah_penumpang -person
Oyster journeys | downo,daytype,SubSystem,StartStn,EndStation,EntTime,ExTime,CardID | origin=StartStn destination=EndStation person=CardID
TfL cycle hire | Rental Id,Duration,Bike Id,End Date,EndStation Id,EndStation Name,Start Date,StartStation Id,StartStation Name | origin=StartStation Id destination=EndStation Id time=Start Date -person
Opal trips | opal_card_id,tap_on_location,tap_off_location,tap_on_time,tap_off_time | origin=tap_on_location destination=tap_off_location time=tap_on_time person=opal_card_id
Opal counts | mode,date,tap,time,loc,count | stop=loc action=tap time=time day=date count=count -person
myki | Mode,BusinessDate,DateTime,CardID,CardType,VehicleID,ParentRoute,RouteID,StopID | stop=StopID time=DateTime person=CardID
TIDES | transaction_id,service_date,event_timestamp,amount,fare_action,vehicle_id,device_id,stop_id,num_riders,fare_media_id,rider_category | time=event_timestamp person=fare_media_id stop=stop_id action=fare_action
GTFS-ride | rider_id,agency_id,trip_id,boarding_stop_id,boarding_stop_sequence,alighting_stop_id,alighting_stop_sequence,service_date,boarding_time,alighting_time,rider_type | origin=boarding_stop_id destination=alighting_stop_id time=boarding_time person=rider_id
MDS trips | provider_id,provider_name,device_id,vehicle_id,vehicle_type,trip_id,start_time,end_time,start_location,end_location | origin=start_location destination=end_location time=start_time -person
Clipper | clipper_serial_number,tag_on_location,tag_off_location,tag_on_time | origin=tag_on_location destination=tag_off_location time=tag_on_time
ORCA | orca_card_number,boarding_station,alighting_station,boarding_ts | origin=boarding_station destination=alighting_station time=boarding_ts person=orca_card_number
BART hourly | date,hour,origin,destination,trips | origin=origin destination=destination time=hour day=date count=trips -person
Chicago TNP | Trip ID,Trip Start Timestamp,Trip End Timestamp,Trip Seconds,Trip Miles,Pickup Census Tract,Dropoff Census Tract,Fare | time=Trip Start Timestamp origin=Pickup Census Tract destination=Dropoff Census Tract -person
Austin scooters | ID,Device ID,Vehicle Type,Trip Duration,Start Time,End Time,Origin Zone,Destination Zone | origin=Origin Zone destination=Destination Zone time=Start Time -person
Capital Bikeshare 2012 | Duration,Start date,End date,Start station number,Start station,End station number,End station,Bike number,Member type | origin=Start station number destination=End station number time=Start date -person
Boston Blue Bikes | tripduration,starttime,stoptime,start station id,end station id,bikeid,usertype,postal code | origin=start station id destination=end station id time=starttime -person
Oslo Bysykkel | started_at,ended_at,duration,start_station_id,start_station_name,end_station_id,end_station_name | origin=start_station_id destination=end_station_id time=started_at -person
Helsinki | Departure,Return,Departure station id,Departure station name,Return station id,Return station name,Covered distance (m),Duration (sec.) | origin=Departure station id destination=Return station id -person
Camel case cards | cardNumberHash,originStationCode,destinationStationCode,entryTimestamp | origin=originStationCode destination=destinationStationCode time=entryTimestamp person=cardNumberHash
Glued small letters | userid,startstationid,endstationid,starttime | origin=startstationid destination=endstationid time=starttime person=userid
Abbreviated | PAX_ID,ORIG_STN,DEST_STN,DEP_TS | origin=ORIG_STN destination=DEST_STN time=DEP_TS
Tarjetas y validaciones | tarjeta,fecha_hora,estacion,evento | person=tarjeta time=fecha_hora stop=estacion action=evento
Cartões e validações | cartao_id,data_hora,estacao,acao | person=cartao_id time=data_hora stop=estacao action=acao
Cartes et validations | carte,horodatage,arret,sens | person=carte time=horodatage stop=arret action=sens
Karten und Vorgänge | Karten-Nr,Zeitstempel,Haltestelle,Vorgang | person=Karten-Nr time=Zeitstempel stop=Haltestelle action=Vorgang
Tessere | tessera,data_ora,fermata,azione | person=tessera time=data_ora stop=fermata action=azione
Kartu | nomor_kartu,waktu,halte,aksi | person=nomor_kartu time=waktu stop=halte action=aksi
Smartcard pan | pan_hash,txn_time,stop_id,txn_type | person=pan_hash time=txn_time stop=stop_id
Zonas | origen_zona,destino_zona,fecha,hora,viajes | origin=origen_zona destination=destino_zona time=hora day=fecha count=viajes -person
"""
CASES = [tuple(part.strip() for part in line.split(" | ")) for line in HEADERS.strip().splitlines()]


def guessed(header: str) -> dict[str, str]:
    kinds = dict.fromkeys(header.split(","), pa.string())
    return guess_columns(Schema("trips.csv", kinds, typed=False))


def _wanted(text: str, header: str) -> dict[str, str]:
    """role=column …, where a column may have spaces."""
    wanted = {}
    rest = text.replace("-person", "").strip()
    while rest:
        role, _, rest = rest.partition("=")
        column = max((c for c in header.split(",") if rest == c or rest.startswith(f"{c} ")), key=len)
        wanted[role.strip()] = column
        rest = rest[len(column) :].strip()
    return wanted


def test_there_are_sixty_headers() -> None:
    assert len({header for _, header, _ in CASES}) >= 60


@pytest.mark.parametrize(("name", "header", "means"), CASES, ids=[c[0] for c in CASES])
def test_columns_are_recognised_by_meaning_and_language(name: str, header: str, means: str) -> None:
    found = guessed(header)
    wanted = _wanted(means, header)
    assert {role: found.get(role) for role in wanted} == wanted
    if "-person" in means:
        assert "person" not in found


NOT_PERSONS = (
    "Genero", "género", "sexo", "gender", "age", "Edad_Usuario", "idade", "Alter", "umur", "user_type", "member_casual", "usertype", "Subscriber Type",
    "tipo_tarjeta", "tipo_cartao", "rider_category", "reader_device_id", "validator_id", "id_validador", "station_capacity", "capacidad", "bike_id",
    "vehicle_id", "trip_id", "ride_id", "transID", "passenger_count", "num_riders", "Anzahl_Kunden", "jumlah_penumpang", "birth year", "VendorID", "member_birth_year",
    "payCardBank", "payCardSex", "Tarif", "start_station_id", "card_balance", "nombre_estacion_origen", "bank_code",
)  # fmt: skip


@pytest.mark.parametrize("name", NOT_PERSONS)
def test_kinds_of_persons_readers_and_things_are_no_persons(name: str) -> None:
    assert not names_person(name)
    assert not may_name_person(name)


@pytest.mark.parametrize(
    "name",
    [
        "ticket_no",
        "phone_hash",
        "IMEI",
        "boleto_id",
        "bilhete_unico",
        "num_billet",
        "perangkat_id",
        "card_ref_new",
        "abono",
        "clipper_serial_number",
        "numero_navigo",
        "email",
    ],
)
def test_what_may_tell_people_apart_is_said_and_not_assumed(name: str) -> None:
    assert may_name_person(name)
    assert not names_person(name)


@given(
    st.sampled_from(
        ["usuario id", "pay card id", "numero tarjeta", "user hash", "nomor kartu", "karten nummer"]
    ),
    st.randoms(),
)
def test_how_a_name_is_written_makes_no_difference(name: str, draw) -> None:
    """camelCase, snake_case, capitals, spaces, hyphens and accents mean the same."""
    words = name.split()
    styles = (
        "_".join(words), "-".join(words), " ".join(words), "".join(words), words[0] + "".join(w.title() for w in words[1:]),
        "".join(w.title() for w in words), "_".join(words).upper(),
    )  # fmt: skip
    written = draw.choice(styles).replace("u", draw.choice(["u", "ú"]))
    assert words_of(written) == words
    assert names_person(written) > 0


@pytest.mark.parametrize(
    "name",
    [
        "commuter_id", "badgeholder", "passholder_id", "CodCliente", "titular_id", "tarjetahabiente", "pasajero_anonimo", "id_portador", "cod_usuario_anonimo",
        "id_passager", "id_client_anonymise", "Passagier_ID", "Inhaber_ID", "Reisender_ID", "titolare_id", "seriale_tessera", "id_pemakai", "pemilik_kartu",
    ],
)  # fmt: skip
def test_people_by_other_words(name: str) -> None:
    assert names_person(name)
    assert may_name_person(name)


@pytest.mark.parametrize(
    "name", ["loyalty_no", "student_id", "estudante_id", "num_etudiant", "matricola_utente"]
)
def test_what_belongs_to_one_person_is_said(name: str) -> None:
    assert may_name_person(name)


def test_the_start_of_a_trip_is_a_time_where_another_column_is_its_origin(tmp_path: Path) -> None:
    """Words for a beginning and an end mean places only where no column is called origin and destination."""
    trips = tmp_path / "viajes.csv"
    trips.write_text("inicio,fin,origen,destino\n2026-03-02 08:10,2026-03-02 08:30,A,B\n")
    written = tmp_path / "cbdp.toml"
    assert cli.main(["init", str(trips), "--out", str(written)]) == 0
    assert 'origin = "origen", destination = "destino", time = "inicio"' in written.read_text()
